// The detailed answer, `--verbose`.
#include <fmt/format.h>

#include "doctor/output/screen.h"
#include "doctor/output/wrapped_text.h"
#include "doctor/remedies/figures.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

constexpr size_t kWidth = 100;

void title(std::string& out, std::string_view text) { out += fmt::format("\n{}\n", text); }

void add_estimate(const Report& report, std::string& out) {
  if (!report.incident.estimate) return;
  const Estimate& estimate = *report.incident.estimate;
  title(out, fmt::format("ESTIMATE, peak in {}: {} ({} to {}) per device", estimate.peak_phase,
                         figure(estimate.likely_bytes), figure(estimate.low_bytes), figure(estimate.high_bytes)));
  out += fmt::format("  host memory per process: {} ({} to {})\n", figure(estimate.host_likely_bytes),
                     figure(estimate.host_low_bytes), figure(estimate.host_high_bytes));
  for (const Term& term : estimate.terms)
    add_block(out, fmt::format("  {:<16} {:>11}  ", term.name, figure(term.bytes)), term.how, 31, kWidth);
  if (estimate.kv_tokens) out += fmt::format("  room for {} tokens of KV cache\n", *estimate.kv_tokens);
  for (const std::string& line : estimate.assumptions) add_block(out, "  assumed", line, 10, kWidth);
}

void add_remedy(const Remedy& remedy, std::string& out) {
  add_block(out, fmt::format("  {:<22} ", remedy.name), remedy.set, 25, kWidth);
  std::string facts = remedy.saves_bytes ? fmt::format("saves {}", figure(*remedy.saves_bytes)) : "saving unknown";
  facts += fmt::format(", {} of the time, {}, effort: {}", fmt::format("{:.2f} x", remedy.slowdown), remedy.kind,
                       remedy.effort);
  if (remedy.likely_alone) facts += remedy.fits_alone ? ", fits alone" : ", likely to fit alone";
  if (remedy.host_bytes && *remedy.host_bytes > 0)
    facts += fmt::format(", {} more on the host", figure(*remedy.host_bytes));
  if (!remedy.needs.empty()) facts += ", needs " + remedy.needs;
  add_block(out, "", facts, 25, kWidth);
  add_block(out, "", remedy.why + "; " + remedy.effect, 25, kWidth);
  for (const std::string& caveat : remedy.caveats) add_block(out, std::string(23, ' ') + "! ", caveat, 25, kWidth);
}

void add_keys(std::string& out, std::string_view label, const std::vector<KeyNote>& notes) {
  for (const KeyNote& note : notes) {
    const std::string place =
        note.origin.line > 0 ? fmt::format("{}:{}", note.origin.file, note.origin.line) : note.origin.file;
    add_block(out, fmt::format("  {:<11} ", label),
              fmt::format("{}{}{}{} {}", place, place.empty() ? "" : ": ", note.origin.key,
                          note.value.empty() ? "" : " = " + note.value, note.text.empty() ? "" : "- " + note.text),
              14, kWidth);
  }
}

}  // namespace

std::string details(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  std::string out;
  add_block(out, "", headline(report), 0, kWidth);
  for (const Message& message : report.incident.messages)
    add_block(out, fmt::format("  line {:<6} ", message.line),
              fmt::format("[{} {}] {}", message.framework, message.format, message.text), 14, kWidth, 6);
  for (const SnapshotAnalysis& snapshot : report.snapshots) {
    title(out, "SNAPSHOT " + snapshot.source);
    out += snapshot_text(snapshot, true);
  }
  if (!d.causes.empty()) title(out, "CAUSES, the likeliest first");
  for (const Cause& cause : d.causes) add_block(out, fmt::format("  {:<24} ", cause.name), cause.evidence, 27, kWidth);
  add_estimate(report, out);
  title(out, "FITS");
  add_block(out, "  ", verdict(report), 2, kWidth);
  if (!d.proposed_set().empty()) {
    std::string names;
    for (const std::string& name : d.proposed_set()) names += (names.empty() ? "" : " + ") + name;
    const char* sure =
        d.smallest_fitting_set.empty() ? "smallest set that is likely to fit: " : "smallest set that fits: ";
    add_block(out, "  ", sure + names, 2, kWidth);
  }
  if (!report.patch.empty()) out += "\nPATCH\n" + report.patch;
  for (const std::string& step : report.by_hand) add_block(out, "  by hand ", step, 10, kWidth);
  if (!report.gpus.empty()) title(out, "GPUS, the smallest that fits first");
  for (const GpuChoice& choice : report.gpus)
    add_block(out, fmt::format("  {} x {:<20} ", choice.count, choice.gpu.name),
              fmt::format("{}: {} of {}{}", choice.fits ? "fits" : "no", figure(choice.need_bytes),
                          figure(choice.gpu.memory_bytes), choice.note.empty() ? "" : ", " + choice.note),
              27, kWidth);
  if (!report.measured.empty()) add_block(out, "\nPROBE ", report.measured, 6, kWidth);
  if (!d.remedies.empty()) title(out, "REMEDIES, what fits alone first, then by cost");
  for (const Remedy& remedy : d.remedies) add_remedy(remedy, out);
  if (!d.refused.empty()) title(out, "NOT USEFUL HERE");
  for (const Refusal& refusal : d.refused)
    add_block(out, fmt::format("  {:<22} ", refusal.name), refusal.why, 25, kWidth);
  if (!d.notes.empty() || !report.notes.empty()) title(out, "NOTES");
  for (const std::string& note : d.notes) add_block(out, "  ", note, 2, kWidth);
  for (const std::string& note : report.notes) add_block(out, "  ", note, 2, kWidth);
  if (report.incident.job) {
    title(out, "KEYS");
    add_keys(out, "unknown", report.incident.job->keys.unknown);
    add_keys(out, "unreadable", report.incident.job->keys.unreadable);
    add_keys(out, "understood", report.incident.job->keys.understood);
    add_keys(out, "irrelevant", report.incident.job->keys.irrelevant);
  }
  for (const std::string& source : report.sources) add_block(out, "\nread ", source, 5, kWidth);
  if (const std::string line = headroom_line(report); !line.empty()) {
    out += "\n";
    add_block(out, "", line, 0, kWidth);
  }
  return out;
}

}  // namespace headroom::doctor
