#include "doctor/output/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/output/wrapped_text.h"
#include "doctor/remedies/balance.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

constexpr size_t kWidth = 80, kIndent = 6, kLines = 24;

std::string device_of(const Message& message) {
  if (message.device_index) return fmt::format("GPU {}", *message.device_index);
  if (message.hinted("either_memory")) return "of a device or of the host: not said";
  return message.framework;
}

// "backward, line 812 of the log, 4 ranks"
std::string place_of(const Report& report, const Message& message) {
  std::string place;
  const auto add = [&](const std::string& text) { place += (place.empty() ? "" : ", ") + text; };
  if (message.phase != "unknown") add("in " + message.phase);
  if (message.line > 1) add(fmt::format("line {}", message.line));
  if (message.repeats > 1) add(fmt::format("{} times", message.repeats));
  if (report.incident.messages.size() > 1)
    add(fmt::format("first of {} different messages", report.incident.messages.size()));
  return place;
}

// A remedy's effects on one line.
std::string effects(const Remedy& remedy) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (remedy.saves_bytes) add(fmt::format("{} {}", remedy.one_try ? "frees" : "saves", figure(*remedy.saves_bytes)));
  if (remedy.one_try)
    add("one try, but not a fix");
  else if (remedy.likely_alone)
    add(remedy.fits_alone ? "FITS" : "likely");
  const double percent = 100 * (remedy.slowdown - 1);
  const auto names = [&](const char* option) { return remedy.set.find(option) != std::string::npos; };
  if (remedy.name == "fewer-workers" && names("num_workers") && !names("num_proc"))
    add("slower loading");  // the steps too where they wait for it
  else if (percent >= 100)
    add(fmt::format("{:.1f} x slower", remedy.slowdown));
  else if (std::abs(percent) >= 1.5)
    add(fmt::format("{:.0f} % {}", std::abs(percent), percent > 0 ? "slower" : "faster"));
  add(remedy.kind == "lossy" ? remedy.effect : remedy.kind);
  if (!remedy.needs.empty()) add("needs " + remedy.needs);
  return text;
}

// Whether a set is proposed as a whole: a proven one, or several remedies that are likely only together, unless a
// situation gives better advice.
bool proposes_set(const Diagnosis& diagnosis) {
  if (!diagnosis.smallest_fitting_set.empty()) return true;
  return diagnosis.likely_set.size() > 1 && diagnosis.remedies.front().evidence <= kUsual;
}

// What the screen proposes: the set, else the first remedies.
std::vector<const Remedy*> proposed(const Diagnosis& diagnosis) {
  std::vector<const Remedy*> chosen;
  if (proposes_set(diagnosis))
    for (const std::string& name : diagnosis.proposed_set())
      for (const Remedy& remedy : diagnosis.remedies)
        if (remedy.name == name) chosen.push_back(&remedy);
  if (!chosen.empty()) return chosen;
  for (const Remedy& remedy : diagnosis.remedies) {
    if (chosen.size() >= 3) break;
    if (remedy.name != "measure" || diagnosis.remedies.size() == 1) chosen.push_back(&remedy);
  }
  return chosen;
}

void add_why(const Report& report, std::string& out) {
  const std::vector<Cause>& causes = report.diagnosis.causes;
  if (causes.empty() && report.incident.estimate) {
    std::string terms;
    for (size_t i = 0; i < std::min<size_t>(4, report.incident.estimate->terms.size()); ++i) {
      const Term& term = report.incident.estimate->terms[i];
      terms += fmt::format("{}{} {}", i ? ", " : "", term.name, figure(term.bytes));
    }
    add_block(out, "WHAT", terms, kIndent, kWidth, 2);
    return;
  }
  size_t shown = 0;
  for (const Cause& cause : causes) {
    if (shown == 3) break;
    add_block(out, shown == 0 ? "WHY" : "", cause.evidence, kIndent, kWidth, 3);
    ++shown;
  }
}

void add_remedies(const Report& report, std::string& out) {
  const std::vector<const Remedy*> remedies = proposed(report.diagnosis);
  const bool incident = !report.incident.messages.empty() || report.incident.job || !report.diagnosis.causes.empty();
  if (!incident || report.diagnosis.fits.value_or(false)) return;
  const bool set = remedies.size() > 1 && proposes_set(report.diagnosis);
  size_t number = 0;
  for (const Remedy* remedy : remedies) {
    ++number;
    const std::string label =
        fmt::format("{:<4}{} ", number == 1 ? "DO" : "", set ? '+' : static_cast<char>('0' + number));
    add_block(out, label, remedy->set, kIndent, kWidth, remedies.size() > 3 ? 1 : 2);
    add_block(out, "", effects(*remedy), kIndent + 2, kWidth, 1);
  }
}

// "RTX-4090 22.1 of 23.6 GiB, 2 x T4 ..."
void add_gpus(const Report& report, std::string& out) {
  constexpr size_t kShown = 8;
  size_t shown = 0;
  for (const GpuChoice& choice : report.gpus) {
    if (!choice.fits || shown == kShown) break;
    const std::string count = choice.count > 1 ? fmt::format("{} x", choice.count) : "";
    const std::string note = choice.note.empty() ? "" : "  " + choice.note;
    const std::string line =
        fmt::format("{:<6}{:>3} {:<18} {:>10} of {:>10}{}", shown++ == 0 ? "GPUS" : "", count, choice.gpu.name,
                    figure(choice.need_bytes), figure(choice.gpu.memory_bytes), note);
    out += line.substr(0, kWidth) + "\n";
  }
  if (shown == 0 && !report.gpus.empty())
    add_block(out, "GPUS", "none known would do, not even 8 of a kind", kIndent, kWidth);
}

// The question whose answer would change the proposal, if no other line asks it and there is room for it.
std::string question_line(const Report& report) {
  std::string out;
  if (!report.ask.empty() || !report.gpus.empty()) return out;
  if (!report.give.empty()) {
    add_block(out, "GIVE", report.give, kIndent, kWidth, 1);
    return out;
  }
  for (const Question& question : report.questions) {
    if (!question.first) break;
    if (verdict(report).find(question.option) != std::string::npos) continue;
    add_block(out, "GIVE", fmt::format("{} N: it would change what comes first", question.option), kIndent, kWidth, 1);
    break;
  }
  return out;
}

std::string cut(const std::string& text) {
  size_t lines = 0, at = 0;
  while (lines < kLines && at < text.size()) {
    const size_t end = text.find('\n', at);
    at = end == std::string::npos ? text.size() : end + 1;
    ++lines;
  }
  return text.substr(0, at);
}

}  // namespace

std::string headline(const Report& report) {
  const Message* message = main_message(report.incident);
  if (!message && report.looked_for_message && !report.incident.job) return "NO OUT-OF-MEMORY MESSAGE FOUND";
  if (!message) {
    const Job* job = report.incident.job ? &*report.incident.job : nullptr;
    std::string what = report.system.empty() ? "JOB" : "JOB OF " + report.system;
    if (job && !job->model.empty()) what += ", " + job->model;
    if (report.incident.gpu) what += ", " + report.incident.gpu->name;
    return what;
  }
  const bool grows = message->hinted("grows");
  const bool share = message->hinted("takes_a_share");
  const bool asks = message->hinted("asks");
  const char* what = grows ? "MEMORY GROWS  " : share || asks ? "MEMORY IN USE  " : "OUT OF MEMORY  ";
  std::string text = what + device_of(*message);
  if (message->kv_bytes_wanted)
    text += fmt::format(": {} of KV cache wanted", figure(*message->kv_bytes_wanted));
  else if (message->requested_bytes)
    text += fmt::format(": {} asked", figure(*message->requested_bytes));
  if (message->free_bytes) text += fmt::format(", {} free", figure(*message->free_bytes));
  if (message->capacity_bytes) text += fmt::format(" of {}", figure(*message->capacity_bytes));
  const std::string place = place_of(report, *message);
  return place.empty() ? text : text + " (" + place + ")";
}

namespace {

// The likely set: its remedies, or their numbers if the screen lists them already.
std::string likely_words(const Diagnosis& diagnosis) {
  if (proposes_set(diagnosis)) return diagnosis.proposed_set().size() > 1 ? "these" : "this";
  const std::vector<const Remedy*> shown = proposed(diagnosis);
  std::string words;
  for (const std::string& name : diagnosis.likely_set) {
    std::string word = name;
    for (const Remedy& remedy : diagnosis.remedies)
      if (remedy.name == name && remedy.set.size() <= 40) word = remedy.set;
    for (size_t i = 0; i < shown.size(); ++i)
      if (shown[i]->name == name) word = std::to_string(i + 1);
    words += (words.empty() ? "" : " and ") + word;
  }
  return words;
}

}  // namespace

std::string verdict(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  const std::optional<Estimate>& estimate = report.incident.estimate;
  if (!estimate) {
    if (!report.measured.empty()) return report.measured;
    if (report.incident.messages.empty() && !report.incident.job && !d.causes.empty())
      return "cannot tell: the program is not one that doctor reads. Give the log of the failure";
    if (report.incident.messages.empty() && !report.incident.job)
      return "nothing to tell. Give the lines around the error, or --config FILE";
    if (report.incident.job && !report.incident.shape)
      return "cannot tell: the model is unknown. Add --model config.json|NAME or --params 7B";
    for (const Remedy* remedy : proposed(d))
      if (remedy->fits_alone) return "by the message's own figures, with " + remedy->set;
    return "cannot tell from the message alone. Add --config FILE and --model NAME";
  }
  const int64_t processes = d.host && report.incident.job ? processes_per_node(*report.incident.job) : 1;
  std::string need = fmt::format("{} ({} to {})", figure(d.need_bytes.value_or(estimate->likely_bytes)),
                                 figure((d.host ? estimate->host_low_bytes : estimate->low_bytes) * processes),
                                 figure((d.host ? estimate->host_high_bytes : estimate->high_bytes) * processes));
  if (d.host) need += processes > 1 ? fmt::format(" on the node, by {} processes", processes) : " of host memory";
  if (!d.limit_bytes)
    return d.host ? fmt::format("{} estimated. Add --host-memory 256GB", need)
                  : fmt::format("{} needed per GPU. Add --gpu NAME or --capacity 24GiB", need);
  const std::string of = fmt::format("of {}", figure(*d.limit_bytes));
  if (!d.fits && !report.incident.messages.empty()) return fmt::format("cannot tell: {}", d.doubt);
  // The log shows a failure where even the upper end has room.
  const int64_t high = (d.host ? estimate->host_high_bytes : estimate->high_bytes) * processes;
  if (!report.incident.messages.empty() && high <= *d.limit_bytes && d.proposed_set().empty())
    return fmt::format("cannot tell: it failed, and the estimate of {} {} does not explain it. {}", need, of,
                       d.host ? "`free -h` while it runs shows who grows" : "Measure with --probe");
  if (d.fits.value_or(false)) return fmt::format("yes: {} {}", need, of);
  if (!d.smallest_fitting_set.empty()) {
    const char* with = d.smallest_fitting_set.size() > 1 ? "all of these" : "this";
    return d.bytes_after ? fmt::format("with {}: yes, {} {}. Now: {}", with, figure(*d.bytes_after), of, need)
                         : fmt::format("with {}: yes. Now: {} {}", with, need, of);
  }
  const std::string sure = d.doubt.empty() ? "the range crosses the limit: measure with --probe" : d.doubt;
  if (!d.fits && report.incident.messages.empty()) return fmt::format("likely: {} {}. To be sure: {}", need, of, sure);
  if (d.likely_set.empty() && report.incident.job && report.incident.job->task == Task::serve && !d.doubt.empty() &&
      !report.incident.messages.empty())
    return fmt::format("cannot tell: what failed is not in the estimate of {}. {}", need, sure);
  if (d.likely_set.empty() && d.host) return fmt::format("cannot tell: {} {} estimated. {}", need, of, sure);
  if (d.likely_set.empty())
    return fmt::format("no: {} {}, and no four of these remedies are enough; see --which-gpu", need, of);
  const std::string after = d.bytes_after ? fmt::format(", {}", figure(*d.bytes_after)) : "";
  return fmt::format("likely with {}{} {}. Now: {}. To be sure: {}", likely_words(d), after, of, need, sure);
}

std::string headroom_line(const Report& report) {
  const HeadroomAnswer& headroom = report.headroom;
  if (headroom.command.empty()) return {};
  const std::string note = headroom.note.empty() ? "" : " (" + headroom.note + ")";
  if (headroom.minimum_bytes)
    return fmt::format("headroom needs {} for this{}: {}", figure(*headroom.minimum_bytes), note, headroom.command);
  return fmt::format("headroom, for the same job{}: {}", note, headroom.command);
}

namespace {

// A snapshot shows what happened; one line is left for what to do.
std::string snapshot_screen(const Report& report) {
  std::string out = snapshot_text(report.snapshots.front(), false);
  const std::vector<const Remedy*> remedies = proposed(report.diagnosis);
  if (!remedies.empty() && !report.incident.messages.empty())
    add_block(out, "DO", remedies.front()->set, kIndent, kWidth, 1);
  if (const std::string line = headroom_line(report); !line.empty()) add_block(out, "", line, 0, kWidth, 2);
  return out;
}

}  // namespace

std::string screen(const Report& report) {
  std::string out;
  if (!report.snapshots.empty() && !report.incident.job) return cut(snapshot_screen(report));
  if (!report.ask.empty()) add_block(out, "", "WHICH MODEL? Run: " + report.ask, 0, kWidth, 4);
  add_block(out, "", headline(report), 0, kWidth, 2);
  out += "\n";
  add_why(report, out);
  out += "\n";
  if (report.gpus.empty()) add_remedies(report, out);
  add_block(out, "FITS", verdict(report), kIndent, kWidth, 3);
  const size_t question = out.size();
  add_gpus(report, out);
  if (!report.measured.empty() && report.incident.estimate)
    add_block(out, "PROBE", report.measured, kIndent, kWidth, 2);
  for (const std::string& quotation : report.quoted) add_block(out, "FROM", quotation, kIndent, kWidth, 2);
  if (!report.diagnosis.notes.empty()) add_block(out, "NOTE", report.diagnosis.notes.front(), kIndent, kWidth, 2);
  if (const std::string line = headroom_line(report); !line.empty()) {
    out += "\n";
    add_block(out, "", line, 0, kWidth, 2);
  }
  if (std::count(out.begin(), out.end(), '\n') < static_cast<std::ptrdiff_t>(kLines))
    out.insert(question, question_line(report));
  return cut(out);
}

}  // namespace headroom::doctor
