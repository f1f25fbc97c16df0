// All weights of a model train on several devices: what each of them holds, and what is left where one row is too much.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;

constexpr std::string_view kAdapters = "lora|adapter|peft|qlora|p-tuning|ptuning|prefix|freez|frozen|冻结";
bool of_all_weights(const CaseView& view) {
  return training_on_device(view) && !view.lora() && !view.quantized_base() && view.log_says(kAdapters).empty() &&
         view.reinforcement_library().empty() && !speaks_of_diffusion(view) && !told_beside_the_steps(view);
}
bool on_several(const CaseView& view) { return view.gpus() > 1 || view.fsdp() || view.story().several_devices; }
bool one_row(const CaseView& view) {
  return view.job().batch.micro.value_or(0) == 1 || smallest_batch_failed(view.incident().log_text);
}
// Trainers that divide weights and states over all of their devices by themselves.
bool divides_by_itself(const CaseView& view) { return view.job().system == litgpt || view.job().system == torchtune; }
bool whole_on_each(const CaseView& view) {
  constexpr std::string_view kDivides = "zero2|zero3|zero-2|zero-3|zero 2|zero 3|deepspeed|fsdp|full_shard|fully shard";
  return of_all_weights(view) && on_several(view) && !view.sharded() && !view.zero() && !divides_by_itself(view) &&
         !view.job().parallel.deepspeed && view.log_says(kDivides).empty();
}
bool in_parts(const CaseView& view) {
  const ParallelSettings& parallel = view.job().parallel;
  return of_all_weights(view) && on_several(view) && (view.sharded() || divides_by_itself(view)) &&
         !parallel.offload_parameters;
}

int64_t states(const CaseView& view) {
  return view.term("weights") + view.term("master weights") + view.term("gradients") + view.term("optimizer states");
}
// Weights, gradients and states are most of what the job takes, and its batch is one row already.
Evidence states_are_most(const CaseView& view) {
  constexpr double kLargeModel = 3e9;
  if (!view.message()) return {};
  const std::optional<int64_t>& need = view.balance().need;
  const std::optional<int64_t>& limit = view.balance().limit;
  // Beyond the device whatever the batch is.
  if (view.incident().estimate && limit && states(view) > *limit)
    return {0.85, fmt::format("{} of weights, gradients and states on each of {} devices of {}", figure(states(view)),
                              view.gpus(), figure(*limit))};
  if (!one_row(view)) return {};
  if (view.incident().estimate && need) {
    if (states(view) * 10 < *need * 6) return {};
    return {0.86, fmt::format("{} of weights, gradients and states on each of {} devices, and one row at a time",
                              figure(states(view)), view.gpus())};
  }
  const std::optional<ModelWords> model = model_in_words(view.incident().log_text);
  if (!model || model->parameters < kLargeModel) return {};
  return {0.83, fmt::format("{}: 16 bytes per parameter with Adam, and one row at a time", model->written)};
}
Evidence parts_are_most(const CaseView& view) {
  if (!view.message() || !one_row(view)) return {};
  // Activations are more: checkpointing and shorter rows come first.
  if (view.incident().estimate && !view.checkpointing() && states(view) * 2 < view.balance().need.value_or(0))
    return {};
  return {0.86, "the weights are divided, and one row at a time fails too"};
}

constexpr std::string_view kPaged =
    "states that leave the device when room is short: optim: paged_adamw_8bit (or paged_adamw_32bit); under DeepSpeed "
    "\"zero_allow_untested_optimizer\": true, and no offload_optimizer";

constexpr Situation kSituations[] = {
    {"all_states_on_every_device",
     "every device holds all weights, gradients and states (16 bytes per parameter with Adam): more devices do not "
     "divide them by themselves, and neither batch nor length changes them",
     whole_on_each,
     {},
     {{"shard"},
      {"offload-parameters"},
      {"larger-gpu", "GPUs with more memory, or more of them: 16 bytes per parameter in all with Adam"},
      {"lora"},
      {"optimizer-8bit"}},
     states_are_most},
    {"one_row_of_divided_weights",
     "weights and states are divided already, and the batch is one row: what is left is to move them to the host, "
     "lighter states, shorter rows, or more devices",
     in_parts,
     {},
     {{"offload-parameters",
       "FSDPStrategy(..., cpu_offload=True): False in the script (finetune/full.py) unless it is edited",
       {},
       litgpt},
      {"offload-parameters", "fsdp_cpu_offload: True (optimizer without fused: True)", {}, torchtune},
      {"offload-parameters"},
      {"paged-optimizer", "optim: paged_adamw_8bit (paged_adamw_32bit), instead of the offload", {}, llamafactory},
      {"paged-optimizer", kPaged, {}, hf_trainer},
      {"sequence-length"},
      {"lora"},
      {"shard"}},
     parts_are_most},
};

}  // namespace

std::span<const Situation> several_gpu_situations() { return kSituations; }

}  // namespace headroom::doctor
