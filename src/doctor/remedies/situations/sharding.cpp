// Several devices: what each one holds in full, what is on the host, and what does not fit all of them together.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool spread_optimizer(const CaseView& view) {
  return training_on_device(view) && several_gpus(view) && !view.sharded();
}
bool by_deepspeed(const CaseView& view) {
  // Colossal-AI has a ZeRO of its own.
  return training_on_device(view) && !view.incident().estimate && view.log_says("colossal").empty();
}

// DeepSpeed is named without its stage, beside a shape that is only guessed.
Evidence stage_not_stated(const CaseView& view) {
  if (!view.figures_ignore_the_system()) return {};
  return {0.9, "DeepSpeed in the log, without its stage"};
}

// Full training whose states are already sharded over all devices and still do not fit.
bool split_already(const CaseView& view) {
  const ParallelSettings& parallel = view.job().parallel;
  return training_on_device(view) && view.sharded() && view.gpus() > 1 && !view.lora() &&
         parallel.offload_optimizer.value_or(Offload::none) == Offload::none &&
         parallel.offload_parameters.value_or(Offload::none) == Offload::none;
}

Evidence shards_beyond_the_device(const CaseView& view) {
  const std::optional<int64_t> limit = view.balance().limit;
  const int64_t held =
      view.term("weights") + view.term("master weights") + view.term("gradients") + view.term("optimizer states");
  if (!limit || held * 10 < *limit * 9) return {};
  return {0.88, fmt::format("{} of weights, gradients and states per device of {}, though split over {}", figure(held),
                            figure(*limit), view.gpus())};
}

// Adapters on a sharded base: a frozen base has neither gradients nor states, so sharding it only adds communication.
Evidence frozen_base(const CaseView& view) {
  const std::string_view adapters = view.log_says("lora|frozen|adapters|peft");
  if (adapters.empty() || view.quantized_base() || !view.log_says("swift sft|swift rlhf").empty()) return {};
  return {0.84, fmt::format("`{}` in the log, under ZeRO-3 or FSDP", adapters)};
}
bool divided_by_log(const CaseView& view) {
  return training_on_device(view) && view.sharded() && !view.incident().estimate;
}

// Of adapters the states are small: what the host could take is next to nothing.
constexpr std::string_view kAdapters = "lora|peft|adapters|qlora";
bool all_weights_by_deepspeed(const CaseView& view) { return by_deepspeed(view) && view.log_says(kAdapters).empty(); }
bool adapters_by_deepspeed(const CaseView& view) { return by_deepspeed(view) && !view.log_says(kAdapters).empty(); }
// Its optimizer is being made: no batch and no data yet.
constexpr std::string_view kMakesStates =
    "_configure_zero_optimizer|_configure_fp16_optimizer|_configure_bf16_optimizer|creating fp16 zero|creating "
    "torch.float16 zero|creating torch.bfloat16 zero|creating bf16 zero|creating zero";
bool makes_states(const CaseView& view) {
  return !view.has_job() && view.reinforcement_library().empty() && view.log_says("stage3.py|zero stage 3").empty();
}
bool by_megatron(const CaseView& view) { return makes_states(view) && !view.log_says("megatron").empty(); }
bool by_deepspeed_alone(const CaseView& view) { return makes_states(view) && view.log_says("megatron").empty(); }
bool states_on_the_device(const CaseView& view) { return on_device(view) && by_deepspeed_alone(view); }
bool states_on_the_host(const CaseView& view) { return view.pool() == Pool::host && by_deepspeed_alone(view); }
bool states_of_megatron(const CaseView& view) { return on_device(view) && by_megatron(view); }
bool states_of_megatron_on_the_host(const CaseView& view) { return view.pool() == Pool::host && by_megatron(view); }
constexpr std::string_view kPartsOfMegatron =
    "--tensor-model-parallel-size 2 (--model-parallel-size 2): each process has half of the weights";
constexpr std::string_view kStatesAreMade =
    "the optimizer is being made: under ZeRO 1 and 2 every process has all weights, and a copy in 32 bits of its part";
constexpr std::string_view kStatesPassTheHost =
    "the optimizer is being made: the model of every process and its copies in 32 bits pass through host memory";
constexpr std::string_view kStatesOnTheHost =
    "\"offload_optimizer\": {\"device\": \"cpu\"}: 12 bytes per parameter in host memory";

bool with_stage_3(const CaseView& view) {
  return by_deepspeed(view) && !tried_in_vain(view.incident().log_text, "shard");
}

constexpr Situation kSituations[] = {
    {"frozen_base_is_divided",
     "a frozen base has no gradients or states to divide: its layers are gathered whole for every pass",
     divided_by_log,
     {},
     {{"qlora",
       "the base in 8 or 4 bits, whole on every device under DDP: load_in_8bit=True, load_in_4bit=True",
       {},
       System::unknown,
       "load_in_4bit|load_in_8bit|quantization_bit|bnb_4bit"},
      {"checkpointing", {}, {}, System::unknown, "gradient_checkpointing=true|gradient_checkpointing: true"},
      {"micro-batch"},
      {"sequence-length"}},
     frozen_base},
    {"shards_fill_the_devices",
     "all devices together are too small for weights, gradients and states: the host can take a part",
     split_already,
     {},
     {{"offload-optimizer"}, {"offload-parameters"}, {"lora"}},
     shards_beyond_the_device},
    {"states_on_every_gpu",
     "every GPU keeps the whole weights and gradients beside its part of the states: the update's copies find no room",
     spread_optimizer,
     {{log, 0.84, "exp_avg_sq|_single_tensor_adam|_multi_tensor_adam|fused_adam|optimizer.step|in step"}},
     {{"shard", "ZeRO stage 3 (\"zero_optimization\": {\"stage\": 3}, ds_z3_config.json) or FSDP FULL_SHARD"},
      {"offload-optimizer", "\"offload_optimizer\": {\"device\": \"cpu\"} (DeepSpeed)"},
      {"optimizer-8bit"}}},
    {"nothing_offloaded",
     "weights and states stay on the device: the host could take the optimizer's part",
     training_on_device,
     {{setup, 0.7, "--zero_stage 2|--zero_stage 3|zero_stage: 2|zero_stage: 3"}},
     {{"offload-optimizer", {}, {}, System::accelerate},
      {"offload-optimizer", "\"offload_optimizer\": {\"device\": \"cpu\"} (OpenRLHF: --adam_offload)"},
      {"micro-batch"}}},
    {"optimizer_split_only",
     "ZeRO 1 and 2 split states and gradients, and every GPU keeps all weights; the states themselves may wait on the "
     "host",
     all_weights_by_deepspeed,
     {{log, 0.84, "initialize_optimizer_states|_create_optimizer_states"},
      {log, 0.8, "stage_1_and_2.py|zero/stage2.py|zero/stage1.py"},
      {log, 0.74, "zero-2|zero2|zero 2|stage 2|stage2|zero_stage 2|zero-1|zero1|zero 1|stage 1|stage1|zero_stage 1"}},
     {{"shard", "\"zero_optimization\": {\"stage\": 3}"},
      {"offload-optimizer", "\"offload_optimizer\": {\"device\": \"cpu\"}"},
      {"micro-batch"}}},
    {"states_of_megatron_are_made",
     kStatesAreMade,
     states_of_megatron,
     {{log, 0.93, kMakesStates}},
     {{"tensor-parallel", kPartsOfMegatron},
      {"shard", "\"zero_optimization\": {\"stage\": 3}, without pipeline stages"},
      {"offload-optimizer", kStatesOnTheHost}}},
    {"states_are_made",
     kStatesAreMade,
     states_on_the_device,
     {{log, 0.92, kMakesStates}},
     {{"shard", "\"zero_optimization\": {\"stage\": 3}"},
      {"offload-optimizer", kStatesOnTheHost},
      {"larger-gpu", "more devices: each has a smaller part"}}},
    {"states_of_megatron_are_made_on_the_host",
     kStatesPassTheHost,
     states_of_megatron_on_the_host,
     {{log, 0.93, kMakesStates}},
     {{"tensor-parallel", kPartsOfMegatron},
      {"no-offload", "without offload_optimizer and cpu_offload: states stay on the devices"},
      {"host-memory"}}},
    {"states_are_made_on_the_host",
     kStatesPassTheHost,
     states_on_the_host,
     {{log, 0.92, kMakesStates}},
     {{"lean-load", "stage 3 with deepspeed.zero.Init(): weights are made in parts, not whole in every process"},
      {"no-offload", "without offload_optimizer and cpu_offload: states stay on the devices"},
      {"host-memory"}}},
    {"adapters_under_zero_2",
     "the adapters' own states are small: every GPU keeps the whole frozen base, and batch and length decide what is "
     "kept beside it (DPO: two answers per row, and the reference's pass)",
     adapters_by_deepspeed,
     {{log, 0.86, "zero-2|zero2|zero 2|stage 2|stage2|zero_stage 2|stage_1_and_2.py"}},
     {{"micro-batch"},
      {"checkpointing", {}, {}, System::unknown, "gradient_checkpointing=true|gradient_checkpointing: true"},
      {"sequence-length", "shorter rows: half of max_length (max_prompt_length, cutoff_len)"},
      {"qlora", "the base in 4 bits (load_in_4bit=True, quantization_bit: 4): under ZeRO-2, not ZeRO-3"}}},
    {"deepspeed_without_a_stage",
     "DeepSpeed divides by its stage: 2 states and gradients, 3 the weights too; without offload all of it stays on "
     "the "
     "devices",
     training_on_device,
     {},
     {{"offload-parameters",
       "stage 3 with offload: \"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}"},
      {"shard", "\"zero_optimization\": {\"stage\": 3}, if it is less"},
      {"checkpointing", {}, {}, System::unknown, "gradient_checkpointing"},
      {"sequence-length", "shorter texts: half of max_length"}},
     stage_not_stated},
    {"gathered_by_stage_3",
     "ZeRO-3 gathers the weights of each layer for its turn; states and weights may wait on the host",
     with_stage_3,
     {{log, 0.78, "zero/stage3.py|partition_parameters.py|partitioned_param_coordinator"},
      {log, 0.74, "zero-3|zero3|zero 3|stage 3|stage3|zero_stage 3"}},
     {{"offload-optimizer", "\"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}"},
      {"micro-batch"},
      {"smaller-buckets",
       "\"stage3_max_live_parameters\": 1e8, \"stage3_prefetch_bucket_size\": 5e7, \"reduce_bucket_size\": 5e7"}}},
};

}  // namespace

std::span<const Situation> sharding_situations() { return kSituations; }

}  // namespace headroom::doctor
