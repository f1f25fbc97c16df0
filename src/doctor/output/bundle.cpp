#include "doctor/output/bundle.h"

#include <fmt/format.h>

#include "doctor/output/redact.h"
#include "doctor/output/screen.h"
#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMessages = 3, kFrames = 12;

void add_message(const Message& message, std::string& out) {
  out += fmt::format("\n[{} {}, phase {}, {} times]\n{}\n", message.framework, message.format, message.phase,
                     message.repeats, message.text);
  const size_t skipped = message.frames.size() > kFrames ? message.frames.size() - kFrames : 0;
  for (size_t i = skipped; i < message.frames.size(); ++i)
    out += fmt::format("  {}:{} {}\n", message.frames[i].file, message.frames[i].line, message.frames[i].function);
}

void add_settings(const Job& job, std::string& out) {
  out += "\nSettings\n";
  for (const KeyNote& note : job.keys.understood)
    if (!note.value.empty()) out += fmt::format("  {} = {}\n", note.origin.key, note.value);
  for (const KeyNote& note : job.keys.unknown)
    out += fmt::format("  {} = {}  (not known to doctor)\n", note.origin.key, note.value);
}

}  // namespace

std::string report_bundle(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  std::string out = "Out-of-memory report by headroom doctor: paths, hosts, names and secrets are taken out\n\n";
  out += headline(report) + "\n";
  if (!report.system.empty()) out += "System: " + report.system + "\n";
  if (report.incident.gpu)
    out += fmt::format("GPU: {}, {}\n", report.incident.gpu->name, figure(report.incident.gpu->memory_bytes));
  for (size_t i = 0; i < report.incident.messages.size() && i < kMessages; ++i)
    add_message(report.incident.messages[i], out);
  if (!d.causes.empty()) out += "\nCauses, the likeliest first\n";
  for (const Cause& cause : d.causes) out += fmt::format("  {}: {}\n", cause.name, cause.evidence);
  if (report.incident.estimate) {
    out += fmt::format("\nEstimate: {}\n", verdict(report));
    for (const Term& term : report.incident.estimate->terms)
      out += fmt::format("  {:<14} {}\n", term.name, figure(term.bytes));
  }
  if (!d.remedies.empty()) out += "\nProposed\n";
  for (const Remedy& remedy : d.remedies)
    out += fmt::format("  {}: {}{}\n", remedy.name, remedy.set,
                       remedy.saves_bytes ? fmt::format(" (saves {})", figure(*remedy.saves_bytes)) : "");
  if (report.incident.job) add_settings(*report.incident.job, out);
  std::vector<std::string> keep{"/dev/shm"};
  if (report.incident.job && report.incident.shape && !report.incident.shape->guessed &&
      find_model_shape(report.incident.shape->name))
    keep.push_back(report.incident.job->model);
  return redact(out, keep);
}

}  // namespace headroom::doctor
