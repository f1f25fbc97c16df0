#include "doctor/answer/headroom_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"
#include "doctor/config/defaults.h"
#include "doctor/model/settings.h"
#include "doctor/remedies/balance.h"
#include "doctor/remedies/case_view.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

// Path of the model's config.json if it is on this machine, else empty.
std::string local_model(const Request& request, const std::optional<ConfigReading>& config) {
  std::vector<fs::path> places;
  if (!request.model.empty()) places.emplace_back(request.model);
  if (config && !config->job.model.empty()) {
    places.emplace_back(config->job.model);
    for (const SourceRead& source : config->sources)
      places.push_back(fs::path(source.name).parent_path() / config->job.model);
  }
  for (const fs::path& place : places) {
    std::error_code status;
    if (fs::is_regular_file(place, status) || fs::is_regular_file(place / "config.json", status)) return place.string();
  }
  return {};
}

std::optional<int64_t> capacity_of(const Case& incident) {
  if (incident.capacity_bytes) return incident.capacity_bytes;
  return incident.gpu ? std::optional(incident.gpu->memory_bytes) : std::nullopt;
}

// Whether fp32 weights alone would fill most of the device.
bool is_small_for(const Case& incident) {
  constexpr double kMost = 0.6;
  const std::optional<int64_t> bytes = capacity_of(incident);
  return bytes && incident.shape && 4 * incident.shape->parameters > kMost * static_cast<double>(*bytes);
}

// Whether a memory is known for the command's --memory.
bool has_budget(const Case& incident) { return capacity_of(incident).value_or(0) >= int64_t{1} << 20; }

std::string budget_of(const Case& incident) {
  const std::optional<int64_t> bytes = capacity_of(incident);
  return *bytes >= (int64_t{1} << 30) ? fmt::format("{}GiB", *bytes >> 30) : fmt::format("{}MiB", *bytes >> 20);
}

// The tokens per sequence that the estimate assumed.
int64_t sequence_of(const Case& incident, const Job& job) {
  if (const std::optional<int64_t> stated = effective_sequence(job)) return *stated;
  return incident.shape ? assumed_sequence(job, *incident.shape) : 512;
}

HeadroomJob training_of(const Case& incident, const std::string& model) {
  const Job job = incident.job.value_or(Job());
  HeadroomJob own;
  own.model = model;
  const int64_t micro = effective_micro_batch(job);
  own.global_batch =
      std::clamp<int64_t>(job.batch.global.value_or(micro * job.batch.accumulation.value_or(1) *
                                                    job.devices.gpus.value_or(1) * job.devices.nodes.value_or(1)),
                          1, int64_t{1} << 20);
  own.sequence = std::clamp<int64_t>(sequence_of(incident, job), 1, int64_t{1} << 20);
  const bool half =
      job.precision.autocast.value_or("none") != "none" || job.precision.weights.value_or("float32") != "float32";
  if (job.lora) own.lora_rank = std::clamp<int64_t>(job.lora->rank, 1, 8192);
  own.precision = half ? "bf16-mixed" : "32-true";
  return own;
}

std::optional<int64_t> minimum_of(const Request& request, const HeadroomJob& job) {
  try {
    return request.minimum(job);
  } catch (const Error&) {
    return std::nullopt;  // headroom does not train this family yet; the command says so itself
  }
}

// Adapters do not change the base weights, so bf16 is enough where fp32 does not fit the device. Decided by
// minimum_bytes where it is known.
void narrow_base(const Request& request, const Case& incident, HeadroomJob& job, HeadroomAnswer& answer) {
  if (job.lora_rank == 0) return;
  const std::optional<int64_t> bytes = capacity_of(incident);
  if (answer.minimum_bytes ? !bytes || *answer.minimum_bytes <= *bytes : !is_small_for(incident)) return;
  HeadroomJob narrow = job;
  narrow.precision = "bf16-true";
  if (answer.minimum_bytes) {
    const std::optional<int64_t> least = minimum_of(request, narrow);
    if (!least || *least >= *answer.minimum_bytes) return;
    answer.minimum_bytes = least;
  }
  job = narrow;
}

}  // namespace

HeadroomAnswer headroom_answer(const Request& request, const Case& incident, const std::optional<ConfigReading>& config,
                               bool language_model) {
  HeadroomAnswer answer;
  if (!has_budget(incident) || !language_model) return answer;
  const std::string here = local_model(request, config);
  std::string model = !here.empty() ? here : config && !config->job.model.empty() ? config->job.model : request.model;
  if (model.empty()) model = "MODEL_DIR";
  const Message* message = main_message(incident);
  const bool serves = message && !incident.job &&
                      (system_of(*message) == System::vllm || system_of(*message) == System::sglang ||
                       system_of(*message) == System::tgi || system_of(*message) == System::llama_server);
  if (serves || (incident.job && incident.job->task != Task::train)) {
    answer.command = fmt::format("headroom generate --model {} --memory {}{}", model, budget_of(incident),
                                 is_small_for(incident) ? " --precision bf16-true" : "");
    return answer;
  }
  HeadroomJob own = training_of(incident, model);
  if (incident.job && request.minimum && !here.empty()) answer.minimum_bytes = minimum_of(request, own);
  if (incident.job) narrow_base(request, incident, own, answer);
  answer.command = fmt::format("headroom plan --model {} --memory {}", model, budget_of(incident));
  if (incident.job)
    answer.command += fmt::format(" --global-batch-size {} --max-seq-length {} --precision {}", own.global_batch,
                                  own.sequence, own.precision);
  if (own.lora_rank > 0) answer.command += fmt::format(" --lora-r {}", own.lora_rank);
  return answer;
}

}  // namespace headroom::doctor
