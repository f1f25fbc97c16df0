#include "doctor/answer/posted_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "doctor/answer/log_command.h"
#include "doctor/answer/post_passages.h"
#include "doctor/answer/words.h"
#include "doctor/config/python_calls.h"
#include "doctor/config/setting.h"
#include "doctor/remedies/case_view.h"
#include "doctor/remedies/log_job.h"
#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

constexpr const char* kCommandLine = "the command line";  // the name that the reader gives a command's words

std::optional<ConfigReading> try_reading(const std::vector<ConfigText>& texts, const std::vector<std::string>& words) {
  try {
    return read_config({{}, texts, words});
  } catch (const Error&) {
    return std::nullopt;  // doctor does not know this program or file
  }
}

// A passage that a reader accepted.
struct Quotation {
  ConfigText text;
  SourceKind kind;
  bool cut;
  ConfigReading reading;
};

// Of a job's own settings; the others configure parts of jobs of several systems.
bool of_a_system(const SystemEvidence& evidence) {
  for (const char* shared : {"Accelerate", "accelerate launch", "DeepSpeed", "PEFT", "bitsandbytes", "PyTorch",
                             "script arguments", "launcher", "Slurm", "FSDP"})
    if (evidence.dialect == shared) return false;
  return evidence.system != System::unknown;
}

// The text without the lines from `begin` to before `end`, counted from 1; they become empty.
std::string without_lines(const std::string& text, int64_t begin, int64_t end) {
  std::string rest;
  int64_t line = 1;
  for (const char c : text) {
    if (c == '\n' || line < begin || line >= end) rest += c;
    line += c == '\n' ? 1 : 0;
  }
  return rest;
}

// Prose beside a document that looks like one more key ("error: it fails"): unknown keys before the first known one and
// behind the last.
std::string without_prose(const ConfigReading& reading, const std::string& text) {
  constexpr int64_t kEnd = int64_t{1} << 40;
  const KeyNotes& keys = reading.job.keys;
  int64_t first = kEnd, last = 0;
  for (const auto* known : {&keys.understood, &keys.irrelevant, &keys.unreadable})
    for (const KeyNote& note : *known) {
      first = std::min(first, note.origin.line);
      last = std::max(last, note.origin.line);
    }
  std::string rest = text;
  for (const KeyNote& note : keys.unknown) {
    if (note.origin.line < first) rest = without_lines(rest, note.origin.line, first);
    if (note.origin.line > last) rest = without_lines(rest, note.origin.line, kEnd);
  }
  return rest;
}

// Enough keys that a reader knows, and few others: prose and reports have colons too.
bool is_configuration(const Quotation& quotation) {
  const KeyNotes& keys = quotation.reading.job.keys;
  if (quotation.kind == SourceKind::python) return !keys.understood.empty();
  const size_t known = keys.understood.size() + keys.irrelevant.size() + keys.unreadable.size();
  const bool sharding = quotation.reading.job.keys.origins.contains("sharding");
  const size_t least = quotation.kind == SourceKind::json && sharding ? 1 : 3;
  return known >= least && !keys.understood.empty() && 4 * keys.unknown.size() <= known;
}

std::optional<Quotation> quotation_of(const Passage& passage) {
  Quotation quotation{{passage_name(passage.kind, passage.line), passage.text}, passage.kind, passage.cut, {}};
  for (const bool again : {false, true}) {
    std::optional<ConfigReading> reading = try_reading({quotation.text}, {});
    if (!reading) return std::nullopt;
    quotation.reading = std::move(*reading);
    if (again || passage.kind == SourceKind::python || quotation.reading.job.keys.unknown.empty()) break;
    quotation.text.text = without_prose(quotation.reading, quotation.text.text);
  }
  return is_configuration(quotation) ? std::optional(std::move(quotation)) : std::nullopt;
}

// Every setting that is more than a name or a path, as "key=value".
std::set<std::string> settings_of(const ConfigReading& reading) {
  std::set<std::string> settings;
  for (const auto* notes : {&reading.job.keys.understood, &reading.job.keys.unreadable})
    for (const KeyNote& note : *notes) settings.insert(note.origin.key + "=" + note.value);
  return settings;
}

std::set<std::string> dialects_of(const ConfigReading& reading) {
  std::set<std::string> dialects;
  for (const SystemEvidence& evidence : reading.evidence) dialects.insert(evidence.dialect);
  return dialects;
}

bool share_a_dialect(const ConfigReading& a, const ConfigReading& b) {
  const std::set<std::string> of_a = dialects_of(a), of_b = dialects_of(b);
  return std::any_of(of_a.begin(), of_a.end(), [&](const std::string& dialect) { return of_b.contains(dialect); });
}

// Two documents of one kind, as before and after a change: which one failed is not known.
bool documents_differ(const std::vector<Quotation>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = i + 1; k < all.size(); ++k) {
      const Quotation &a = all[i], &b = all[k];
      const bool documents = a.kind != SourceKind::python && b.kind != SourceKind::python;
      if (documents && share_a_dialect(a.reading, b.reading) && settings_of(a.reading) != settings_of(b.reading))
        return true;
    }
  return false;
}

// The same document again.
void drop_repeated(std::vector<Quotation>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    all.erase(std::remove_if(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                             [&](const Quotation& later) {
                               return later.kind != SourceKind::python && all[i].kind != SourceKind::python &&
                                      share_a_dialect(all[i].reading, later.reading);
                             }),
              all.end());
}

// A call that is quoted twice with different arguments.
bool calls_differ(const std::string& code) {
  constexpr const char* kSettings[] = {"Arguments",       "Config",     "LLM",   "EngineArgs",
                                       "from_pretrained", "DataLoader", "Params"};
  std::map<std::string, std::string> seen;
  for (const PythonCall& call : read_python_calls(code, "").calls) {
    const std::string name = call.callee.substr(call.callee.rfind('.') + 1);
    if (std::none_of(std::begin(kSettings), std::end(kSettings), [&](const char* end) { return name.ends_with(end); }))
      continue;
    std::string arguments;
    for (const auto& [key, value] : call.arguments) arguments += key + "=" + value.text + ";";
    const auto [known, added] = seen.emplace(call.callee, arguments);
    if (!added && known->second != arguments) return true;
  }
  return false;
}

// Code from several places of the post is one script: names are explained elsewhere.
void join_code(std::vector<Passage>& passages) {
  const auto is_code = [](const Passage& passage) { return passage.kind == SourceKind::python; };
  const auto first = std::find_if(passages.begin(), passages.end(), is_code);
  if (first == passages.end()) return;
  for (auto next = first + 1; next != passages.end(); ++next) {
    if (!is_code(*next)) continue;
    const auto lines = std::count(first->text.begin(), first->text.end(), '\n');
    if (lines < next->line) first->text += next->text.substr(static_cast<size_t>(lines));
    first->cut = first->cut || next->cut;
  }
  passages.erase(std::remove_if(first + 1, passages.end(), is_code), passages.end());
}

// The quotations of the post; none where they contradict each other.
std::vector<Quotation> quotations_of(const std::string& post) {
  std::vector<Passage> passages = configuration_passages(post);
  join_code(passages);
  std::vector<Quotation> all;
  for (const Passage& passage : passages)
    if (std::optional<Quotation> quotation = quotation_of(passage)) all.push_back(std::move(*quotation));
  for (const Quotation& quotation : all)
    if (!quotation.reading.job.keys.conflicts.empty() ||
        (quotation.kind == SourceKind::python && calls_differ(quotation.text.text)))
      return {};
  if (documents_differ(all)) return {};
  drop_repeated(all);
  return all;
}

// Systems that have options of their own: a job is of one. TRL's trainers also take arguments of transformers.
bool of_one_system(const ConfigReading& reading) {
  std::set<System> systems;
  for (const SystemEvidence& evidence : reading.evidence) {
    const bool own_script = evidence.source == kCommandLine && evidence.evidence.starts_with("script ");
    if (of_a_system(evidence) && !own_script) systems.insert(evidence.system);
  }
  if (systems.contains(System::trl)) systems.erase(System::hf_trainer);
  return systems.size() <= 1;
}

// A command line overrides files; two quotations that differ are another matter.
bool consistent(const ConfigReading& reading) {
  return of_one_system(reading) && std::all_of(reading.job.keys.conflicts.begin(), reading.job.keys.conflicts.end(),
                                               [](const KeyNote& note) { return note.origin.file == kCommandLine; });
}

// Removes the files that the post quotes without their names: as many of a kind as are missing of it.
void take_as_quoted(const std::vector<Quotation>& quotations, ConfigReading& reading) {
  std::map<SourceKind, int> left;
  for (const Quotation& quotation : quotations) ++left[quotation.kind];
  for (const std::string& path : reading.missing)
    if (const std::optional<SourceKind> kind = kind_of_name(path)) --left[*kind];
  std::vector<std::string> still;
  for (const std::string& path : reading.missing) {
    const std::optional<SourceKind> kind = kind_of_name(path);
    if (!kind || left[*kind] < 0) {
      still.push_back(path);
      continue;
    }
    std::erase_if(reading.notes, [&](const std::string& note) { return note.find(path) != std::string::npos; });
  }
  reading.missing = std::move(still);
}

// Settings in missing files, and unknown options of the user's own script, could change everything. Without a model,
// the command names a recipe or a script that holds the settings.
bool usable_command(const ConfigReading& reading) {
  const Job& job = reading.job;
  return reading.missing.empty() && !job.model.empty() && (!own_program(job.system) || job.keys.unknown.empty());
}

// The model and all settings that decide are there, and none is cut off or computed elsewhere.
bool is_whole(const std::vector<Quotation>& quotations, const ConfigReading& reading) {
  const bool system = std::any_of(reading.evidence.begin(), reading.evidence.end(), of_a_system);
  const bool cut = std::any_of(quotations.begin(), quotations.end(), [](const Quotation& each) { return each.cut; });
  const Sharding sharding = reading.job.parallel.sharding.value_or(Sharding::none);
  const bool shared = sharding != Sharding::none && sharding != Sharding::ddp;
  if (shared && !reading.job.devices.gpus) return false;  // among how many devices is not known
  return system && !cut && reading.missing.empty() && reading.job.keys.unreadable.empty() &&
         (!reading.job.model.empty() || reading.job.architecture.contains("hidden"));
}

std::vector<ConfigText> texts_of(const std::vector<Quotation>& quotations) {
  std::vector<ConfigText> texts;
  for (const Quotation& quotation : quotations) texts.push_back(quotation.text);
  return texts;
}

// A server's settings beside a training's message, or settings beside a message of TensorFlow, belong to other runs.
bool of_the_failed_program(const LogReport& log, const Job& job) {
  Case incident;
  incident.messages = log.messages;
  incident.log_text = lower(log.excerpt);
  take_words(incident);
  const Estimator none = [](const Job&, const ModelShape&, const std::optional<Gpu>&) { return Estimate(); };
  const CaseView view(incident, none);
  const bool other = !view.other_program().name.empty() || !named_framework(incident.log_text, "").empty();
  if (other || view.foreign_framework() || !view.reinforcement_library().empty()) return false;
  const System shown = view.job().system;
  if (server_system(shown)) return server_system(job.system);
  return own_program(shown) || !server_system(job.system);
}

PostedConfig with_quotations(const std::vector<Quotation>& quotations, std::optional<ConfigReading> reading,
                             bool decisive) {
  PostedConfig posted;
  if (!reading) return posted;
  posted.whole = decisive && is_whole(quotations, *reading);
  posted.command = std::any_of(reading->sources.begin(), reading->sources.end(),
                               [](const SourceRead& source) { return source.name == kCommandLine; });
  if (std::none_of(reading->evidence.begin(), reading->evidence.end(), of_a_system) &&
      reading->job.system == System::hf_trainer)
    reading->job.system = System::unknown;  // adapters and quantisation alone: any trainer may take them
  posted.quoted = true;
  reading->job.unseen_script = reading->missing_script;
  posted.config = std::move(reading);
  return posted;
}

// Of "TrainingArguments.optim" the argument's name.
std::string short_key(SourceKind kind, const std::string& key) {
  return kind == SourceKind::python ? key.substr(key.rfind('.') + 1) : key;
}

void take_command(const std::vector<std::string>& words, PostedConfig& posted) {
  std::optional<ConfigReading> reading = try_reading({}, words);
  if (!reading) return;
  posted.missing = reading->missing;
  if (!usable_command(*reading)) return;
  reading->job.unseen_script = reading->missing_script;
  posted.whole = posted.command = true;
  posted.config = std::move(reading);
}

}  // namespace

PostedConfig posted_config(const LogReport& log) {
  const std::vector<std::string> words = command_in_log(log.excerpt);
  PostedConfig command;
  if (!words.empty()) take_command(words, command);
  const std::vector<Quotation> quotations = quotations_of(log.excerpt);
  if (quotations.empty()) return command;
  std::optional<ConfigReading> both = try_reading(texts_of(quotations), words);
  // The command is of another program, or unknown to doctor: what is quoted may still be the job's.
  const bool strange = !both && !words.empty();
  if (strange) both = try_reading(texts_of(quotations), {});
  if (!both || !consistent(*both) || !of_the_failed_program(log, both->job)) return command;
  take_as_quoted(quotations, *both);
  if (!words.empty() && !strange && !usable_command(*both)) {
    if (command.config) return command;
    return with_quotations(quotations, try_reading(texts_of(quotations), {}), false);
  }
  return with_quotations(quotations, std::move(both), !strange);
}

std::vector<std::string> settings_by_quotation(const ConfigReading& config) {
  std::vector<std::string> lines;
  for (const SourceRead& source : config.sources) {
    if (source.referred || source.name == kCommandLine) continue;
    std::string settings;
    for (const KeyNote& note : config.job.keys.understood)
      if (note.origin.file == source.name)
        settings +=
            fmt::format("{}{} {}", settings.empty() ? "" : ", ", short_key(source.kind, note.origin.key), note.value);
    lines.push_back(fmt::format("{}: {}", source.name, settings));
  }
  return lines;
}

}  // namespace headroom::doctor
