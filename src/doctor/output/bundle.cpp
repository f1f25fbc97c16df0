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
  for (const KeyNote& note : job.understood)
    if (!note.value.empty()) out += fmt::format("  {} = {}\n", note.origin.key, note.value);
  for (const KeyNote& note : job.unknown)
    out += fmt::format("  {} = {}  (not known to doctor)\n", note.origin.key, note.value);
}

}  // namespace

std::string report_bundle(const Report& report) {
  const Diagnosis& d = report.diagnosis;
  std::string out = "Out-of-memory report by headroom doctor: paths, hosts, names and secrets are taken out\n\n";
  out += headline(report) + "\n";
  if (!report.system.empty()) out += "System: " + report.system + "\n";
  if (report.patient.gpu)
    out += fmt::format("GPU: {}, {}\n", report.patient.gpu->name, figure(report.patient.gpu->memory_bytes));
  for (size_t i = 0; i < report.patient.messages.size() && i < kMessages; ++i)
    add_message(report.patient.messages[i], out);
  if (!d.causes.empty()) out += "\nCauses, the likeliest first\n";
  for (const Cause& cause : d.causes) out += fmt::format("  {}: {}\n", cause.name, cause.evidence);
  if (report.patient.estimate) {
    out += fmt::format("\nEstimate: {}\n", verdict(report));
    for (const Term& term : report.patient.estimate->terms)
      out += fmt::format("  {:<14} {}\n", term.name, figure(term.bytes));
  }
  if (!d.remedies.empty()) out += "\nProposed\n";
  for (const Remedy& remedy : d.remedies)
    out += fmt::format("  {}: {}{}\n", remedy.name, remedy.set,
                       remedy.saves_bytes ? fmt::format(" (saves {})", figure(*remedy.saves_bytes)) : "");
  if (report.patient.job) add_settings(*report.patient.job, out);
  std::vector<std::string> keep{"/dev/shm"};
  if (report.patient.job && report.patient.shape && !report.patient.shape->guessed &&
      find_model_shape(report.patient.shape->name))
    keep.push_back(report.patient.job->model);
  return redact(out, keep);
}

}  // namespace headroom::doctor
