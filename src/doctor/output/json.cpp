#include "doctor/output/json.h"

#include <nlohmann/json.hpp>

#include "doctor/remedies/balance.h"
#include "doctor/snapshot/snapshot_output.h"

namespace headroom::doctor {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json message_json(const Message& message) {
  Json json = Json::object();
  json["text"] = message.text;
  json["line"] = message.line;
  json["framework"] = message.framework;
  json["requested_bytes"] = or_null(message.requested_bytes);
  json["capacity_bytes"] = or_null(message.capacity_bytes);
  json["allocated_bytes"] = or_null(message.allocated_bytes);
  json["reserved_bytes"] = or_null(message.reserved_bytes);
  json["reserved_unallocated_bytes"] = or_null(message.reserved_unallocated_bytes);
  json["free_bytes"] = or_null(message.free_bytes);
  json["process_bytes"] = or_null(message.process_bytes);
  json["other_processes"] = Json::array();
  for (const OtherProcess& other : message.other_processes)
    json["other_processes"].push_back({{"pid", other.pid}, {"bytes", or_null(other.bytes)}});
  json["device_index"] = or_null(message.device_index);
  json["phase"] = message.phase;
  json["format"] = message.format;
  json["rank"] = or_null(message.rank);
  json["repeats"] = message.repeats;
  return json;
}

Json estimate_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  Json json = Json::object();
  json["low_bytes"] = estimate->low_bytes;
  json["likely_bytes"] = estimate->likely_bytes;
  json["high_bytes"] = estimate->high_bytes;
  json["terms"] = Json::array();
  for (const Term& term : estimate->terms)
    json["terms"].push_back({{"name", term.name}, {"bytes", term.bytes}, {"how", term.how}});
  json["host_bytes"] = estimate->host_likely_bytes;
  json["phase"] = estimate->peak_phase;
  json["kv_tokens"] = or_null(estimate->kv_tokens);
  json["allocated_bytes"] = estimate->allocated_bytes;
  json["reserved_bytes"] = estimate->reserved_bytes;
  json["step_seconds"] = estimate->step_seconds > 0 ? Json(estimate->step_seconds) : Json(nullptr);
  json["assumptions"] = estimate->assumptions;
  return json;
}

Json remedy_json(const Remedy& remedy) {
  Json json = Json::object();
  json["name"] = remedy.name;
  json["set"] = remedy.set;
  json["saves_bytes"] = or_null(remedy.saves_bytes);
  json["slowdown"] = remedy.slowdown;
  json["kind"] = remedy.kind;
  json["fits_alone"] = remedy.fits_alone;
  json["likely_alone"] = remedy.likely_alone;
  json["evidence"] = remedy.evidence;
  json["why"] = remedy.why;
  json["effect"] = remedy.effect;
  json["effort"] = remedy.effort;
  json["needs"] = remedy.needs;
  json["host_bytes"] = or_null(remedy.host_bytes);
  json["caveats"] = remedy.caveats;
  return json;
}

}  // namespace

std::string report_json(const Report& report) {
  const Diagnosis& diagnosis = report.diagnosis;
  Json json = Json::object();
  json["messages"] = Json::array();
  for (const Message& message : report.incident.messages) json["messages"].push_back(message_json(message));
  json["causes"] = Json::array();
  for (const Cause& cause : diagnosis.causes)
    json["causes"].push_back({{"name", cause.name}, {"evidence", cause.evidence}});
  json["situations"] = Json::array();
  for (const SeenSituation& seen : diagnosis.situations)
    json["situations"].push_back(
        {{"name", seen.name}, {"cause", seen.cause}, {"shown", seen.shown}, {"evidence", seen.evidence}});
  json["estimate"] = estimate_json(report.incident.estimate);
  json["remedies"] = Json::array();
  for (const Remedy& remedy : diagnosis.remedies) json["remedies"].push_back(remedy_json(remedy));
  json["smallest_fitting_set"] = diagnosis.smallest_fitting_set;
  json["likely_set"] = diagnosis.likely_set;
  json["surest"] = diagnosis.surest.empty() ? Json(nullptr) : Json(diagnosis.surest);
  json["unknown_keys"] = Json::array();
  if (report.incident.job)
    for (const KeyNote& note : report.incident.job->keys.unknown)
      json["unknown_keys"].push_back(
          {{"key", note.origin.key}, {"file", note.origin.file}, {"line", note.origin.line}, {"nearest", note.text}});
  json["headroom"] = {{"command", report.headroom.command.empty() ? Json(nullptr) : Json(report.headroom.command)},
                      {"minimum_bytes", or_null(report.headroom.minimum_bytes)}};
  json["need_bytes"] = or_null(diagnosis.need_bytes);
  json["need_from"] = provenance_name(balance_of(report.incident).need_from);
  json["limit_bytes"] = or_null(diagnosis.limit_bytes);
  json["bytes_after"] = or_null(diagnosis.bytes_after);
  json["high_after"] = or_null(diagnosis.high_after);
  json["fits"] = or_null(diagnosis.fits);
  json["doubt"] = diagnosis.doubt;
  json["not_useful"] = Json::array();
  for (const Refusal& refusal : diagnosis.refused)
    json["not_useful"].push_back({{"name", refusal.name}, {"why", refusal.why}});
  json["notes"] = diagnosis.notes;
  for (const std::string& note : report.notes) json["notes"].push_back(note);
  json["ask"] = report.ask.empty() ? Json(nullptr) : Json(report.ask);
  json["questions"] = Json::array();
  for (const Question& question : report.questions)
    json["questions"].push_back(
        {{"text", question.text}, {"option", question.option}, {"changes_the_first_remedy", question.first}});
  json["patch"] = report.patch.empty() ? Json(nullptr) : Json(report.patch);
  json["by_hand"] = report.by_hand;
  if (!report.snapshots.empty()) json["snapshots"] = Json::array();
  for (const SnapshotAnalysis& snapshot : report.snapshots) json["snapshots"].push_back(Json(snapshot_json(snapshot)));
  json["measured"] = report.measured.empty() ? Json(nullptr) : Json(report.measured);
  if (!report.gpus.empty()) json["gpus"] = Json::array();
  for (const GpuChoice& choice : report.gpus)
    json["gpus"].push_back({{"name", choice.gpu.name},
                            {"count", choice.count},
                            {"need_bytes", choice.need_bytes},
                            {"memory_bytes", choice.gpu.memory_bytes},
                            {"fits", choice.fits},
                            {"note", choice.note}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::doctor
