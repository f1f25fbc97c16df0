#include "doctor/config/spelling.h"

#include <fmt/format.h>

namespace headroom::doctor {
namespace {

// The key that a field has when a job states it for the first time.
struct MainKey {
  System system;
  std::string_view field, key;
};

constexpr MainKey kMainKeys[] = {
    {System::hf_trainer, "micro_batch", "per_device_train_batch_size"},
    {System::hf_trainer, "accumulation", "gradient_accumulation_steps"},
    {System::hf_trainer, "eval_batch", "per_device_eval_batch_size"},
    {System::hf_trainer, "checkpointing", "gradient_checkpointing"},
    {System::hf_trainer, "optimizer", "optim"},
    {System::hf_trainer, "compile", "torch_compile"},
    {System::hf_trainer, "extras.liger", "use_liger_kernel"},
    {System::hf_trainer, "extras.empty_cache_steps", "torch_empty_cache_steps"},
    {System::hf_trainer, "extras.eval_accumulation_steps", "eval_accumulation_steps"},
    {System::hf_trainer, "extras.auto_find_batch_size", "auto_find_batch_size"},
    {System::hf_trainer, "extras.prediction_loss_only", "prediction_loss_only"},
    {System::hf_trainer, "dataloader_workers", "dataloader_num_workers"},
    {System::hf_trainer, "pin_memory", "dataloader_pin_memory"},
    {System::hf_trainer, "attention", "attn_implementation"},
    {System::hf_trainer, "weight_dtype", "dtype"},
    {System::trl, "sequence", "max_length"},
    {System::trl, "packing", "packing"},
    {System::trl, "activation_offload", "activation_offloading"},
    {System::trl, "extras.vllm_sleep", "vllm_enable_sleep_mode"},
    {System::oumi, "micro_batch", "training.per_device_train_batch_size"},
    {System::oumi, "eval_batch", "training.per_device_eval_batch_size"},
    {System::oumi, "accumulation", "training.gradient_accumulation_steps"},
    {System::oumi, "checkpointing", "training.enable_gradient_checkpointing"},
    {System::oumi, "optimizer", "training.optimizer"},
    {System::oumi, "autocast", "training.mixed_precision_dtype"},
    {System::oumi, "compile", "training.compile"},
    {System::oumi, "extras.empty_cache_steps", "training.empty_device_cache_steps"},
    {System::oumi, "dataloader_workers", "training.dataloader_num_workers"},
    {System::oumi, "sequence", "model.model_max_length"},
    {System::oumi, "weight_dtype", "model.torch_dtype_str"},
    {System::oumi, "attention", "model.attn_implementation"},
    {System::oumi, "extras.liger", "model.enable_liger_kernel"},
    {System::oumi, "extras.freeze", "model.freeze_layers"},
    {System::oumi, "sharding", "fsdp.sharding_strategy"},
    {System::oumi, "offload_parameters", "fsdp.cpu_offload"},
    {System::oumi, "forward_prefetch", "fsdp.forward_prefetch"},
    {System::oumi, "backward_prefetch", "fsdp.backward_prefetch"},
    {System::oumi, "packing", "data.train.pack"},
    {System::litgpt, "micro_batch", "train.micro_batch_size"},
    {System::litgpt, "global_batch", "train.global_batch_size"},
    {System::litgpt, "sequence", "train.max_seq_length"},
    {System::litgpt, "autocast", "precision"},
    {System::litgpt, "weight_dtype", "precision"},
    {System::litgpt, "quantization", "quantize"},
    {System::litgpt, "gpus", "devices"},
    {System::litgpt, "optimizer", "optimizer"},
    {System::axolotl, "micro_batch", "micro_batch_size"},
    {System::axolotl, "accumulation", "gradient_accumulation_steps"},
    {System::axolotl, "eval_batch", "eval_batch_size"},
    {System::axolotl, "sequence", "sequence_len"},
    {System::axolotl, "checkpointing", "gradient_checkpointing"},
    {System::axolotl, "activation_offload", "activation_offloading"},
    {System::axolotl, "optimizer", "optimizer"},
    {System::axolotl, "packing", "sample_packing"},
    {System::axolotl, "chunked_loss", "chunked_cross_entropy"},
    {System::axolotl, "attention", "attn_implementation"},
    {System::axolotl, "compile", "torch_compile"},
    {System::axolotl, "extras.empty_cache_steps", "torch_empty_cache_steps"},
    {System::llamafactory, "sequence", "cutoff_len"},
    {System::llamafactory, "attention", "flash_attn"},
    {System::llamafactory, "extras.liger", "enable_liger_kernel"},
    {System::llamafactory, "activation_offload", "use_unsloth_gc"},
    {System::llamafactory, "packing", "packing"},
    {System::torchtune, "micro_batch", "batch_size"},
    {System::torchtune, "accumulation", "gradient_accumulation_steps"},
    {System::torchtune, "eval_batch", "batch_size_val"},
    {System::torchtune, "sequence", "tokenizer.max_seq_len"},
    {System::torchtune, "checkpointing", "enable_activation_checkpointing"},
    {System::torchtune, "activation_offload", "enable_activation_offloading"},
    {System::torchtune, "optimizer", "optimizer._component_"},
    {System::torchtune, "optimizer_in_backward", "optimizer_in_bwd"},
    {System::torchtune, "compile", "compile"},
    {System::torchtune, "packing", "dataset.packed"},
    {System::torchtune, "weight_dtype", "dtype"},
    {System::torchtune, "offload_parameters", "fsdp_cpu_offload"},
    {System::neox, "micro_batch", "train_micro_batch_size_per_gpu"},
    {System::neox, "accumulation", "gradient_accumulation_steps"},
    {System::neox, "sequence", "seq-length"},
    {System::neox, "checkpointing", "checkpoint-activations"},
    {System::neox, "sharding", "zero_optimization.stage"},
    {System::deepspeed, "micro_batch", "train_micro_batch_size_per_gpu"},
    {System::deepspeed, "accumulation", "gradient_accumulation_steps"},
    {System::deepspeed, "sharding", "zero_optimization.stage"},
    {System::deepspeed, "offload_optimizer", "zero_optimization.offload_optimizer.device"},
    {System::deepspeed, "offload_parameters", "zero_optimization.offload_param.device"},
    {System::deepspeed, "buffers.reduce_bucket_size", "zero_optimization.reduce_bucket_size"},
    {System::deepspeed, "buffers.allgather_bucket_size", "zero_optimization.allgather_bucket_size"},
    {System::deepspeed, "buffers.stage3_max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {System::deepspeed, "buffers.stage3_prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
    {System::deepspeed, "buffers.sub_group_size", "zero_optimization.sub_group_size"},
    {System::accelerate, "sharding", "fsdp_config.fsdp_sharding_strategy"},
    {System::accelerate, "offload_parameters", "fsdp_config.fsdp_offload_params"},
    {System::accelerate, "backward_prefetch", "fsdp_config.fsdp_backward_prefetch"},
    {System::accelerate, "forward_prefetch", "fsdp_config.fsdp_forward_prefetch"},
    {System::accelerate, "gpus", "num_processes"},
    {System::accelerate, "autocast", "mixed_precision"},
    {System::vllm, "max_model_len", "max-model-len"},
    {System::vllm, "max_sequences", "max-num-seqs"},
    {System::vllm, "max_batched_tokens", "max-num-batched-tokens"},
    {System::vllm, "gpu_memory_utilization", "gpu-memory-utilization"},
    {System::vllm, "kv_dtype", "kv-cache-dtype"},
    {System::vllm, "kv_cache_bytes", "kv-cache-memory-bytes"},
    {System::vllm, "eager", "enforce-eager"},
    {System::vllm, "tensor_parallel", "tensor-parallel-size"},
    {System::vllm, "quantization", "quantization"},
    {System::vllm, "weight_dtype", "dtype"},
    {System::sglang, "max_model_len", "context-length"},
    {System::sglang, "max_sequences", "max-running-requests"},
    {System::sglang, "gpu_memory_utilization", "mem-fraction-static"},
    {System::sglang, "kv_dtype", "kv-cache-dtype"},
    {System::sglang, "eager", "disable-cuda-graph"},
    {System::sglang, "tensor_parallel", "tp-size"},
    {System::sglang, "extras.chunked_prefill_size", "chunked-prefill-size"},
    {System::sglang, "extras.capture_sizes", "cuda-graph-max-bs"},
    {System::llama_server, "max_model_len", "ctx-size"},
    {System::llama_server, "max_sequences", "parallel"},
    {System::llama_server, "max_batched_tokens", "ubatch-size"},
    {System::llama_server, "gpu_layers", "n-gpu-layers"},
    {System::llama_server, "kv_dtype", "cache-type-k"},
    {System::llama_server, "attention", "flash-attn"},
    {System::llama_server, "extras.kv_on_host", "no-kv-offload"},
    {System::tgi, "max_model_len", "max-total-tokens"},
    {System::tgi, "max_batched_tokens", "max-batch-prefill-tokens"},
    {System::tgi, "gpu_memory_utilization", "cuda-memory-fraction"},
};

// The system's own word for a canonical value. Systems without a row write the canonical word itself.
struct ValueWord {
  System system;
  std::string_view field, value, word;
};

constexpr ValueWord kValueWords[] = {
    {System::hf_trainer, "optimizer", "adamw", "adamw_torch_fused"},
    {System::hf_trainer, "optimizer", "adamw_8bit", "adamw_bnb_8bit"},
    {System::hf_trainer, "optimizer", "adamw_4bit", "adamw_torch_4bit"},
    {System::hf_trainer, "optimizer", "paged_adamw", "paged_adamw_32bit"},
    {System::hf_trainer, "optimizer", "lion", "lion_32bit"},
    {System::torchtune, "optimizer", "adamw", "torch.optim.AdamW"},
    {System::torchtune, "optimizer", "sgd", "torch.optim.SGD"},
    {System::torchtune, "optimizer", "adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
    {System::torchtune, "optimizer", "paged_adamw", "bitsandbytes.optim.PagedAdamW"},
    {System::torchtune, "optimizer", "paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit"},
    {System::torchtune, "optimizer", "adamw_4bit", "torchao.optim.AdamW4bit"},
    {System::litgpt, "optimizer", "adamw", "torch.optim.AdamW"},
    {System::litgpt, "optimizer", "sgd", "torch.optim.SGD"},
    {System::litgpt, "optimizer", "adamw_8bit", "bitsandbytes.optim.AdamW8bit"},
    {System::litgpt, "optimizer", "paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit"},
    {System::litgpt, "quantization", "nf4", "bnb.nf4"},
    {System::litgpt, "quantization", "nf4-dq", "bnb.nf4-dq"},
    {System::litgpt, "quantization", "fp4", "bnb.fp4"},
    {System::litgpt, "quantization", "int8", "bnb.int8-training"},
    {System::litgpt, "weight_dtype", "bfloat16", "bf16-true"},
    {System::litgpt, "weight_dtype", "float16", "16-true"},
    {System::litgpt, "weight_dtype", "float32", "32-true"},
    {System::litgpt, "autocast", "bfloat16", "bf16-mixed"},
    {System::litgpt, "autocast", "float16", "16-mixed"},
    {System::oumi, "sharding", "zero3", "FULL_SHARD"},
    {System::oumi, "sharding", "zero2", "SHARD_GRAD_OP"},
    {System::oumi, "sharding", "hybrid", "HYBRID_SHARD"},
    {System::oumi, "backward_prefetch", "false", "NO_PREFETCH"},
    {System::oumi, "backward_prefetch", "true", "BACKWARD_PRE"},
    {System::oumi, "autocast", "bfloat16", "BF16"},
    {System::oumi, "autocast", "float16", "FP16"},
    {System::oumi, "autocast", "none", "NONE"},
    {System::oumi, "offload_parameters", "cpu", "true"},
    {System::oumi, "offload_parameters", "none", "false"},
    {System::accelerate, "sharding", "zero3", "FULL_SHARD"},
    {System::accelerate, "sharding", "zero2", "SHARD_GRAD_OP"},
    {System::accelerate, "sharding", "hybrid", "HYBRID_SHARD"},
    {System::accelerate, "backward_prefetch", "false", "NO_PREFETCH"},
    {System::accelerate, "backward_prefetch", "true", "BACKWARD_PRE"},
    {System::accelerate, "offload_parameters", "cpu", "true"},
    {System::accelerate, "offload_parameters", "none", "false"},
    {System::accelerate, "autocast", "bfloat16", "bf16"},
    {System::accelerate, "autocast", "float16", "fp16"},
    {System::accelerate, "autocast", "none", "no"},
    {System::torchtune, "offload_parameters", "cpu", "true"},
    {System::torchtune, "offload_parameters", "none", "false"},
    {System::torchtune, "weight_dtype", "bfloat16", "bf16"},
    {System::torchtune, "weight_dtype", "float32", "fp32"},
    {System::deepspeed, "sharding", "zero3", "3"},
    {System::deepspeed, "sharding", "zero2", "2"},
    {System::deepspeed, "sharding", "zero1", "1"},
    {System::deepspeed, "sharding", "ddp", "0"},
    {System::neox, "sharding", "zero1", "1"},
    {System::neox, "sharding", "zero2", "2"},
    {System::neox, "sharding", "zero3", "3"},
    {System::llamafactory, "attention", "flash_attention_2", "fa2"},
    {System::llamafactory, "attention", "eager", "disabled"},
    {System::llama_server, "attention", "flash_attention", "on"},
    {System::llama_server, "attention", "eager", "off"},
};

// Systems that build on another take its keys.
System base_of(System system) {
  switch (system) {
    case System::trl:
    case System::llamafactory:
    case System::axolotl:
    case System::pytorch_script:
      return System::hf_trainer;
    default:
      return System::unknown;
  }
}

// Axolotl has its own keys for what it renames, transformers' words for values.
std::string word_of(System system, const std::string& field, const std::string& value) {
  for (System at = system; at != System::unknown; at = base_of(at))
    for (const ValueWord& word : kValueWords)
      if (word.system == at && word.field == field && word.value == value) return std::string(word.word);
  return value;
}

std::string key_of(System system, const std::string& field) {
  for (System at = system; at != System::unknown; at = base_of(at))
    for (const MainKey& key : kMainKeys)
      if (key.system == at && key.field == field) return std::string(key.key);
  return {};
}

// Whose words the key at that place takes: a part of the job may be DeepSpeed's or Accelerate's file.
System system_of_key(const Job& job, const std::string& key) {
  if (key.starts_with("zero_optimization") || key == "train_micro_batch_size_per_gpu") return System::deepspeed;
  if (key.find("fsdp_config") != std::string::npos || key == "mixed_precision" || key.starts_with("--fsdp_"))
    return System::accelerate;
  return job.system;
}

bool is_flag(const std::string& value) { return value == "true" || value == "false"; }

std::string text_of(const Edit& edit, SourceKind style) {
  const std::string last = edit.key.substr(edit.key.rfind('.') + 1);
  switch (style) {
    case SourceKind::yaml:
      return edit.key + ": " + edit.value;
    case SourceKind::json:
      return fmt::format("\"{}\": {}", edit.key, edit.value);
    case SourceKind::python:
    case SourceKind::notebook:
      return fmt::format("{}={}", last, is_flag(edit.value) ? (edit.value == "true" ? "True" : "False") : edit.value);
    case SourceKind::command:
      break;
  }
  if (edit.remove) return "without " + edit.key;
  if (!edit.key.starts_with("-")) return edit.key + "=" + edit.value;
  return edit.value.empty() ? edit.key : edit.key + " " + edit.value;
}

std::string python_call(System system, const std::string& key) {
  if (system == System::trl) return "SFTConfig." + key;
  if (system == System::oumi) {
    const std::string section = key.substr(0, key.find('.'));
    const std::string name = key.substr(key.rfind('.') + 1);
    if (section == "model") return "ModelParams." + name;
    if (section == "fsdp") return "FSDPParams." + name;
    if (section == "peft") return "PeftParams." + name;
    return "TrainingParams." + name;
  }
  return (key == "dtype" || key == "attn_implementation" ? "from_pretrained." : "TrainingArguments.") + key;
}

// Keys that say several things at once: one field cannot be set there alone.
bool is_composite(const std::string& key, const std::string& field) {
  const std::string last = key.substr(key.find_last_of(".-") + 1);
  if (last == "_component_") return field != "optimizer" && field != "model";
  return last == "fsdp" || last == "distributed_type" || last == "adapter" || last == "plugins" || last == "_conf" ||
         last == "finetuning_type" || last == "use_peft";
}

// transformers has a key per type of mixed precision.
std::optional<std::string> autocast_key(const Job& job, const std::string& value) {
  if (value != "bfloat16" && value != "float16") return std::nullopt;
  const std::string key = value == "bfloat16" ? "bf16" : "fp16";
  const auto origin = job.origins.find("autocast");
  if (origin != job.origins.end() && job.autocast.value_or("none") != "none" && !origin->second.key.ends_with(key))
    return std::nullopt;  // the other one would have to go first
  return key;
}

bool serves(System system) {
  return system == System::vllm || system == System::sglang || system == System::llama_server || system == System::tgi;
}

}  // namespace

std::optional<Spelling> spelling_of(const Job& job, const std::string& field, const std::string& value,
                                    SourceKind style) {
  Spelling spelling;
  if (field == "autocast" && (job.system == System::hf_trainer || base_of(job.system) == System::hf_trainer)) {
    const std::optional<std::string> key = autocast_key(job, value);
    if (!key) return std::nullopt;
    spelling.edit = {style == SourceKind::command  ? "--" + *key
                     : style == SourceKind::python ? python_call(job.system, *key)
                                                   : *key,
                     "true"};
    spelling.text = text_of(spelling.edit, style);
    return spelling;
  }
  const auto origin = job.origins.find(field);
  const bool stated = origin != job.origins.end() && origin->second.line > 0 && !origin->second.key.ends_with("()");
  if (stated) {
    if (is_composite(origin->second.key, field)) return std::nullopt;
    spelling.file = origin->second.file;
    spelling.edit.key = origin->second.key;
    spelling.edit.line = origin->second.line;
  } else {
    const std::string key = key_of(job.system, field);
    if (key.empty()) return std::nullopt;
    const bool options = job.system == System::torchtune || job.system == System::llamafactory;
    spelling.edit.key = style == SourceKind::command && !options ? "--" + key
                        : style == SourceKind::python            ? python_call(job.system, key)
                                                                 : key;
  }
  const std::string& key = spelling.edit.key;
  spelling.edit.value = word_of(system_of_key(job, key), field, value);
  // Flags of servers take no value.
  if (key.starts_with("-") && serves(job.system) && is_flag(value)) {
    spelling.edit.remove = value == "false";
    spelling.edit.value.clear();
  }
  spelling.text = text_of(spelling.edit, style);
  return spelling;
}

}  // namespace headroom::doctor
