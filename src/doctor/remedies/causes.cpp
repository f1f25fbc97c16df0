#include "doctor/remedies/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"

namespace headroom::doctor {
namespace {

struct Answer {
  std::string_view cause;
  std::vector<std::string_view> techniques;
};

}  // namespace

void growth_causes(const CaseView& s, std::vector<Cause>& causes) {
  const Growth& growth = s.incident().growth;
  std::string evidence;
  for (const std::string& line : growth.evidence) evidence += (evidence.empty() ? "" : "; ") + line;
  switch (growth.kind) {
    case GrowthKind::leak:
      causes.push_back(
          {"leak", evidence + ": something keeps references (losses summed without .item(), outputs in lists)", 0.88});
      return;
    case GrowthKind::length:
      causes.push_back({"variable_length", evidence, 0.75});
      return;
    case GrowthKind::periodic:
      causes.push_back({"evaluation", evidence + ": evaluations or saves", 0.75});
      return;
    case GrowthKind::fragmentation:
      causes.push_back({"fragmentation", evidence, 0.8});
      return;
    default:
      return;
  }
}

namespace {

// The message says only that there was no room.
Cause device_full(const CaseView& s) {
  const MessageFigures& f = s.figures();
  std::string evidence = "the message gives no figures";
  if (f.requested && f.free)
    evidence = fmt::format("{} were asked for, {} are free", figure(*f.requested), figure(*f.free));
  else if (f.requested)
    evidence = fmt::format("{} found no room", figure(*f.requested));
  else if (s.message()->hinted("disguised"))
    evidence = "a library could not set itself up: usually because the device is full";
  return {s.serving() ? "server_full" : "device_full", evidence, 0.4};
}

// A person's words without the memory that they mean: a device's is assumed.
void open_memory(const CaseView& s, std::vector<Cause>& causes) {
  if (!s.message()->hinted("either_memory")) return;
  causes.push_back({"which_memory",
                    "the post does not say whether a device's memory or the host's ran out: nvidia-smi and `free -h` "
                    "while it runs show it; what follows assumes a device",
                    0.74});
}

void by_weight(std::vector<Cause>& causes) {
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.weight > b.weight; });
}

}  // namespace

std::vector<Cause> rank_causes(const CaseView& s, const std::vector<Seen>& seen) {
  std::vector<Cause> causes;
  // A situation that is only the usual cause weighs less than the figures.
  for (const auto& [situation, evidence] : seen)
    if (evidence.weight > kUsual || seen.front().evidence.weight <= kUsual)
      causes.push_back({std::string(situation->name), fmt::format("{} ({})", situation->cause, evidence.shown),
                        evidence.weight > kUsual ? evidence.weight : 0.4});
  device_causes(s, causes);
  job_causes(s, causes);
  phase_causes(s, causes);
  growth_causes(s, causes);
  by_weight(causes);
  std::vector<Cause> distinct;
  if (weights_exceed_the_device(seen))
    std::erase_if(causes, [](const Cause& cause) { return cause.name == "server_workspace"; });
  for (Cause& cause : causes)
    if (std::none_of(distinct.begin(), distinct.end(), [&](const Cause& other) { return other.name == cause.name; }))
      distinct.push_back(std::move(cause));
  if (distinct.empty() && s.message() && s.pool() == Pool::device) distinct.push_back(device_full(s));
  if (s.message()) open_memory(s, distinct);
  by_weight(distinct);
  return distinct;
}

std::vector<std::string_view> answers_to(std::string_view cause) {
  const Answer answers[] = {
      {"tensors_fill_the_device", {"micro-batch", "checkpointing", "sequence-length", "half-weights"}},
      {"device_full", {"micro-batch", "checkpointing", "sequence-length", "mixed-precision", "half-weights"}},
      {"server_full", {"gpu-memory-utilization", "max-model-len", "gpu-layers", "kv-dtype", "quantized-model"}},
      {"compute_buffer", {"batched-tokens", "max-model-len", "gpu-layers"}},
      {"inference", {"no-grad", "micro-batch", "half-inference"}},
      {"data_parallel", {"ddp"}},
      {"fragmentation", {"expandable-segments", "max-split-size"}},
      {"other_processes", {"end-other-processes", "gpu-memory-utilization"}},
      {"unattributed", {"end-other-processes"}},
      {"limit_below_capacity", {"expandable-segments", "end-other-processes"}},
      {"attention_scores", {"flash-attention"}},
      {"logits", {"liger", "chunked-loss", "micro-batch"}},
      {"batch_too_large", {"micro-batch", "checkpointing", "sequence-length"}},
      {"model_too_large", {"shard", "qlora", "offload-parameters", "quantized-model"}},
      {"optimizer_step", {"optimizer-8bit", "paged-optimizer", "fused-optimizer", "offload-optimizer"}},
      {"evaluation", {"eval-batch", "eval-accumulation", "no-grad"}},
      {"variable_length", {"length-buckets", "sequence-length"}},
      {"leak", {"measure"}},
      {"save", {"sharded-save"}},
      {"load", {"lean-load", "gpu-layers", "quantized-model", "tensor-parallel"}},
      {"one_tensor_too_large", {"micro-batch", "sequence-length", "flash-attention", "batched-tokens"}},
      {"too_many_requests", {"max-sequences"}},
      {"prefill_too_large", {"batched-tokens", "max-model-len"}},
      {"kv_cache_too_small", {"gpu-memory-utilization", "max-model-len", "kv-dtype"}},
      {"kv_cache_too_large", {"kv-dtype", "max-model-len", "gpu-layers"}},
      {"graph_capture", {"eager", "gpu-memory-utilization", "max-sequences"}},
      {"server_workspace", {"gpu-memory-utilization", "batched-tokens", "max-sequences"}},
      {"shared_memory", {"shared-memory", "fewer-workers"}},
      {"host_memory", {"host-memory", "fewer-workers", "lean-load"}},
  };
  for (const Answer& answer : answers)
    if (answer.cause == cause) return answer.techniques;
  return {};
}

}  // namespace headroom::doctor
