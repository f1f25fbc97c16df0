// What each system does when a configuration does not say, with the source of each default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/job.h"

namespace headroom::doctor {

// A default and its source: project, file, field, and the versions in which it holds if it changed.
template <typename T>
struct Default {
  std::optional<T> value;  // absent: there is no default, and `source` says what happens instead
  std::string_view source;
};

// How long a sequence is when no key says so.
enum class SequenceRule {
  fixed,          // `sequence` tokens
  model_maximum,  // the model's context, or the longest sample when that is shorter
  data,           // the longest sample of the data, limited only by the model's context
};

struct SystemDefaults {
  Default<int64_t> micro_batch, accumulation, eval_batch, global_batch;
  Default<int64_t> sequence;
  SequenceRule sequence_rule = SequenceRule::model_maximum;
  Default<std::string_view> weight_dtype;  // "checkpoint": the type of the published checkpoint
  Default<std::string_view> autocast;      // "none", bfloat16, ...
  Default<std::string_view> optimizer;
  Default<std::string_view> attention;
  Default<bool> checkpointing, packing, chunked_loss, compile, pin_memory;
  Default<double> max_grad_norm;  // 0: no clipping
  Default<int64_t> dataloader_workers;
  Default<Sharding> several_gpus;  // what more than one device means if no key says
  // LoRA, when it is on
  Default<int64_t> lora_rank;
  Default<double> lora_alpha;
  Default<std::string_view> lora_targets;  // "q_proj,v_proj", "all-linear", "model": PEFT's choice for the family
  // servers
  Default<double> gpu_memory_utilization;
  Default<int64_t> max_model_len;  // absent: the model's maximum
  Default<int64_t> max_sequences, max_batched_tokens, kv_block_size, gpu_layers, swap_bytes;
  Default<std::string_view> kv_dtype;
  Default<bool> eager;
};

// The defaults of the system's release in mid-2026; where a default changed since 2023, its source says when. A pure
// function. Systems that only configure others (Accelerate, DeepSpeed) and unknown ones have the defaults of a PyTorch
// script.
SystemDefaults system_defaults(System system);

// The defaults for one job: those of its system, adjusted to the job (LitGPT's subcommand, LoRA, an axolotl file with
// 4-bit weights, ...).
SystemDefaults job_defaults(const Job& job);

// Sequences per device and step: stated by the job, derived from its global batch, accumulation and devices, or the
// system's default. At least 1.
int64_t effective_micro_batch(const Job& job);
// Tokens per sequence; absent when it depends on the model or the data (see job_defaults(job).sequence_rule).
std::optional<int64_t> effective_sequence(const Job& job);

}  // namespace headroom::doctor
