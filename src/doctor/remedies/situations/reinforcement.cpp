// Reinforcement learning on language models: training, reference model and a rollout server share the devices.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

// The server has too little for its KV cache: a smaller share would make it worse.
bool cache_too_small(const CaseView& view) {
  return !view.log_says("no available memory for the cache blocks|kv cache is needed|not enough memory. please try")
              .empty();
}

bool by_verl(const CaseView& view) { return on_device(view) && view.reinforcement_library() == "verl"; }
// The library's trainers on given answers have no rollouts, so no server runs beside the training.
constexpr std::string_view kWithoutRollouts =
    "openrlhf.cli.train_sft|openrlhf.cli.train_dpo|openrlhf.cli.train_rm|openrlhf.cli.train_kto|openrlhf.cli.train_kd|"
    "openrlhf.cli.train_prm|openrlhf/cli/train_sft|openrlhf/cli/train_dpo|openrlhf/cli/train_rm|openrlhf/cli/train_kto|"
    "openrlhf/cli/train_kd|openrlhf/cli/train_prm";

bool of_openrlhf(const CaseView& view) { return on_device(view) && view.reinforcement_library() == "openrlhf"; }
bool on_given_answers(const CaseView& view) {
  return of_openrlhf(view) && !(view.setup_says(kWithoutRollouts).empty() && view.log_says(kWithoutRollouts).empty());
}
bool by_openrlhf(const CaseView& view) { return of_openrlhf(view) && !on_given_answers(view); }
bool with_trl(const CaseView& view) {
  return on_device(view) && view.reinforcement_library().empty() && !view.log_says("vllm").empty() &&
         !view.log_says("grpo_trainer|grpotrainer|ppo_trainer|online_dpo|rloo_trainer|use_vllm|trl").empty() &&
         !view.log_says("grpo|ppo|rloo|online_dpo|online dpo|use_vllm").empty();
}

// ms-swift's own options of a rollout on the devices of the training.
constexpr std::string_view kBySwift =
    "swift rlhf|ms-swift|megatron rlhf|offload_model|--offload_optimizer|vllm_mode colocate|--sleep_level";
Evidence colocated_by_swift(const CaseView& view) {
  if (view.log_says("grpo").empty() || view.log_says("colocat").empty()) return {};
  const std::string_view word = view.log_says(kBySwift);
  return word.empty() ? Evidence{} : Evidence{0.92, fmt::format("GRPO and `{}` in the log", word)};
}
bool rollout_beside_a_training(const CaseView& view) {
  return on_device(view) && view.reinforcement_library().empty() && view.log_says("grpo_trainer.py|trl/").empty();
}
bool by_trl(const CaseView& view) { return with_trl(view) && !cache_too_small(view); }
bool rollout_by_verl(const CaseView& view) { return by_verl(view) && !cache_too_small(view); }

constexpr std::string_view kParametersOff = "param_offload=true|param_offload: true";
constexpr std::string_view kSmallActorBatch =
    "ppo_micro_batch_size_per_gpu=1 |ppo_micro_batch_size_per_gpu=1\n|ppo_micro_batch_size_per_gpu: 1\n";
constexpr std::string_view kOffloadOfVerl =
    "actor_rollout_ref.actor.fsdp_config.param_offload=True "
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True";

constexpr Situation kSituations[] = {
    {"server_in_a_training",
     "vLLM runs beside the training on the same device and takes the share that it has when alone",
     by_trl,
     {{log, 0.9, "vllm"}},
     {{"gpu-memory-utilization", "vllm_gpu_memory_utilization=0.3 (TRL), vllm_enable_sleep_mode=True"},
      {"max-model-len", "vllm_max_model_len=2048 (TRL): prompt and completion"},
      {"micro-batch"}}},
    {"rollout_by_swift",
     "the rollout's vLLM shares the devices with the training: when it wakes, weights, states and long answers of the "
     "training may still be there",
     rollout_beside_a_training,
     {},
     {{"gpu-memory-utilization",
       "--vllm_gpu_memory_utilization 0.4 --sleep_level 1 --offload_model true --offload_optimizer true"},
      {"sequence-length", "--max_length and --max_completion_length <half>: long answers fill both sides"},
      {"tensor-parallel", "--vllm_tensor_parallel_size 2, or a rollout of its own: --vllm_mode server"},
      {"micro-batch", "--per_device_train_batch_size 1 (Megatron: --micro_batch_size 1)"}},
     colocated_by_swift},
    {"cache_beside_a_training",
     "the training's weights count as the server's own use, and its share leaves nothing for the KV cache",
     with_trl,
     {{log, 0.95, "no available memory for the cache blocks|kv cache is needed"}},
     {{"gpu-memory-utilization", "vllm_gpu_memory_utilization=0.6 (TRL): more than now; what training needs must stay"},
      {"max-model-len", "vllm_max_model_len=2048 (TRL): prompt and completion"},
      {"tensor-parallel", "vllm_tensor_parallel_size=2 (TRL), or vllm_mode=\"server\" on GPUs of its own"}}},
    {"share_of_the_rollout",
     "the actor's weights count as the server's own use, and its share leaves nothing for the KV cache",
     by_verl,
     {{log, 0.96, "no available memory for the cache blocks|kv cache is needed|not enough memory. please try"}},
     {{"offload-optimizer", kOffloadOfVerl, "weights and states leave the device while the rollout runs",
       System::unknown, kParametersOff},
      {"gpu-memory-utilization", "actor_rollout_ref.rollout.gpu_memory_utilization=0.7: more than now"},
      {"tensor-parallel", "actor_rollout_ref.rollout.tensor_model_parallel_size=2"}}},
    {"rollout_finds_no_room",
     "the rollout's server wakes, and finds its share taken by what the training left on the device",
     rollout_by_verl,
     {{log, 0.94, "wake_up|cumem|_allocate_kv_cache|resume_memory_occupation|rollout_mode"},
      {log, 0.9, "generate_sequences|sharding_manager|vllm_rollout|sglang_rollout|load_weights"}},
     {{"gpu-memory-utilization", "actor_rollout_ref.rollout.gpu_memory_utilization=0.4"},
      {"offload-optimizer", kOffloadOfVerl, "weights and states leave the device while the rollout runs",
       System::unknown, kParametersOff},
      {"tensor-parallel", "actor_rollout_ref.rollout.tensor_model_parallel_size=2"},
      {"eager",
       "actor_rollout_ref.rollout.enforce_eager=True",
       {},
       System::unknown,
       "enforce_eager=true|enforce_eager: true"}}},
    {"update_beside_the_rollout",
     "the update of actor or critic: its micro-batch, its states, and what the rollout's server keeps",
     by_verl,
     {{log, 0.95, "compute_log_prob|compute_ref_log_prob|compute_values|update_actor|update_critic|update_policy"},
      {log, 0.9, "_forward_micro_batch|optimizer.step|optimizer_step|dp_actor|dp_critic|megatron_actor"}},
     {{"micro-batch",
       "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
       "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 (ref., critic. likewise)",
       {},
       System::unknown,
       kSmallActorBatch},
      {"offload-optimizer", kOffloadOfVerl, {}, System::unknown, kParametersOff},
      {"gpu-memory-utilization", "actor_rollout_ref.rollout.gpu_memory_utilization=0.4"},
      {"checkpointing",
       "actor_rollout_ref.model.enable_gradient_checkpointing=True",
       {},
       System::unknown,
       "enable_gradient_checkpointing=true|enable_gradient_checkpointing: true"},
      {"sequence-length", "data.max_response_length=<half>; use_dynamic_bsz=True with ppo_max_token_len_per_gpu"}}},
    {"training_by_verl",
     "actor, reference and the rollout's server share every device",
     rollout_by_verl,
     {{either, 0.8, "actor_rollout_ref|verl"}},
     {{"gpu-memory-utilization", "actor_rollout_ref.rollout.gpu_memory_utilization=0.4"},
      {"offload-optimizer", kOffloadOfVerl, {}, System::unknown, kParametersOff},
      {"micro-batch",
       "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
       "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
       {},
       System::unknown,
       kSmallActorBatch}}},
    {"training_on_given_answers",
     "whole rows train, of DPO and reward models two at a time: scores, logits and what every layer keeps",
     on_given_answers,
     {{either, 0.86, "openrlhf"}},
     {{"flash-attention",
       "--flash_attn (newer: --attn_implementation flash_attention_2)",
       {},
       System::unknown,
       "--flash_attn|flash_attention_2"},
      {"micro-batch",
       "--micro_train_batch_size 1",
       {},
       System::unknown,
       "--micro_train_batch_size 1 |--micro_train_batch_size 1\n"},
      {"checkpointing", "--gradient_checkpointing", {}, System::unknown, "--gradient_checkpointing"},
      {"offload-optimizer", "--zero_stage 3 --adam_offload", {}, System::unknown, "--adam_offload"},
      {"sequence-length", "--max_len <half>"}}},
    {"training_by_openrlhf",
     "actor, critic, reference and vLLM's engines share the devices",
     by_openrlhf,
     {{either, 0.86, "openrlhf"}},
     {{"micro-batch",
       "--micro_train_batch_size 1 --micro_rollout_batch_size 1",
       {},
       System::unknown,
       "--micro_train_batch_size 1 |--micro_train_batch_size 1\n"},
      {"micro-batch",
       "--micro_rollout_batch_size 1",
       {},
       System::unknown,
       "--micro_rollout_batch_size 1 |--micro_rollout_batch_size 1\n"},
      {"offload-optimizer", "--zero_stage 3 --adam_offload", {}, System::unknown, "--adam_offload"},
      {"gpu-memory-utilization", "--vllm_gpu_memory_utilization 0.5 --vllm_enable_sleep --deepspeed_enable_sleep"},
      {"checkpointing", "--gradient_checkpointing", {}, System::unknown, "--gradient_checkpointing"}}},
};

}  // namespace

std::span<const Situation> reinforcement_situations() { return kSituations; }

}  // namespace headroom::doctor
