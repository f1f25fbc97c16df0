// A training or serving job of another system, in terms that do not depend on that system. Readers (one per system)
// fill it from configurations, command lines and scripts; the memory model and the remedies read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headroom::doctor {

enum class System {
  unknown,
  hf_trainer,
  trl,
  accelerate,
  deepspeed,
  litgpt,
  oumi,
  axolotl,
  llamafactory,
  torchtune,
  neox,
  vllm,
  sglang,
  llama_server,
  tgi,
  pytorch_script,
};

enum class Task { train, serve, infer };

// Where a fact was read: file as given by the user, line from 1 (0: a command line given by itself), key in the user's
// own spelling: the dotted path in YAML and JSON ("training.optimizer"), the option on a command line
// ("--train.micro_batch_size"), the call and its argument in Python ("TrainingArguments.bf16").
struct Origin {
  std::string file;
  int64_t line = 0;
  std::string key;
};

struct LoraSettings {
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  std::vector<std::string> targets;          // empty: the system's default
  std::vector<std::string> modules_to_save;  // trained in full
  bool all_linear = false;                   // the system's word for every linear layer but the head
  bool dora = false;                         // a magnitude vector and a full-size product per target
};

enum class Sharding { none, ddp, zero1, zero2, zero3, hybrid };  // FSDP's FULL_SHARD is zero3, SHARD_GRAD_OP zero2
enum class Offload { none, cpu, nvme };

// A key that was read, and what became of it: none is dropped silently.
struct KeyNote {
  Origin origin;
  std::string text;   // see the lists of Job
  std::string value;  // as written, cut to 200 bytes
};

// What a batch scheduler, container or launcher grants a job.
struct Grant {
  std::optional<int64_t> host_memory_bytes;  // per node
  std::optional<int64_t> cpus;               // per task
  std::optional<int64_t> tasks_per_node;
  std::string partition, time_limit;
};

// Every key of the input stands in exactly one of understood, irrelevant, unknown, unreadable.
// Absent means that nothing states it; the memory model then applies the system's own default and says so.
struct Job {
  System system = System::unknown;
  Task task = Task::train;
  std::string model;                 // id or path, as written
  std::optional<double> parameters;  // from --params, or stated by the configuration
  std::optional<int64_t> gpus, nodes;
  std::string gpu;  // name as written, empty when unknown

  // training
  std::optional<int64_t> micro_batch, accumulation, global_batch, eval_batch, sequence;
  std::optional<std::string> weight_dtype;  // of stored weights: float32, bfloat16, float16
  std::optional<std::string> autocast;      // compute dtype of mixed precision: bfloat16, float16, fp8; "none"
  std::optional<std::string> attention;     // eager, sdpa, flash_attention_2, ...
  std::optional<bool> checkpointing;
  std::string checkpointing_kind;        // full, selective, attention, ... where the system says
  std::optional<std::string> optimizer;  // canonical: adamw, adamw_8bit, paged_adamw_8bit, adafactor, sgd, lion, ...
  std::optional<LoraSettings> lora;
  std::optional<std::string> quantization;     // of the base weights: nf4, nf4-dq, fp4, int8, gptq, awq, fp8, none
  std::optional<std::string> optimizer_dtype;  // of states where not float32
  std::optional<bool> optimizer_in_backward, chunked_loss, compile, packing, pin_memory, activation_offload;
  std::optional<double> max_grad_norm;
  std::optional<int64_t> dataloader_workers;
  std::optional<Sharding> sharding;
  std::optional<Offload> offload_parameters, offload_optimizer;
  std::optional<bool> forward_prefetch, backward_prefetch, limit_all_gathers, reshard_after_forward;
  std::optional<int64_t> tensor_parallel, pipeline_parallel, context_parallel, expert_parallel;
  std::optional<bool> flash_loss_upcast;   // logits kept in float32
  std::map<std::string, int64_t> buffers;  // DeepSpeed's element counts: reduce_bucket_size, sub_group_size, ...

  // serving
  std::optional<double> gpu_memory_utilization;  // vLLM's; SGLang's mem_fraction_static; server's own meaning by system
  std::optional<int64_t> max_model_len, max_sequences, max_batched_tokens, kv_block_size, kv_cache_bytes, gpu_layers;
  std::optional<int64_t> cpu_offload_bytes, swap_bytes;
  std::optional<std::string> kv_dtype;
  std::optional<bool> eager;  // no graph capture
  std::optional<int64_t> max_new_tokens;

  // both
  std::string objective;                        // sft, dpo, kto, orpo, grpo, rloo, reward, ppo, pretrain, distil, ...
  std::vector<std::string> further_models;      // reference, teacher, reward and draft models, as written
  std::map<std::string, int64_t> architecture;  // when stated: layers, hidden, heads, kv_heads, vocab, max_positions...
  std::map<std::string, std::string> allocator;    // PYTORCH_ALLOC_CONF's settings and the like
  std::map<std::string, std::string> environment;  // other variables set beside the command
  // What no other field holds, by name: see docs/doctor_configs.md ("liger", "freeze", "auto_find_batch_size",
  // "empty_cache_steps", "eval_accumulation_steps", "prediction_loss_only", "full_eval_dtype", "group_by_length",
  // "pin_memory", "prefetch_factor", "state_dict_type", "cpu_ram_efficient_loading", "gather_on_save", "device_map",
  // "ddp_bucket_mb", "layerwise_optimizer", "optimizer_rank", "qat", "quantization_compute_dtype", ...).
  std::map<std::string, std::string> extras;
  Grant grant;

  std::map<std::string, Origin> origins;  // name of a field above -> where it was set ("extras.liger" for extras)
  std::vector<KeyNote> understood;        // text: the field it sets, or what it selects
  std::vector<KeyNote> irrelevant;        // text: why it takes no memory
  std::vector<KeyNote> unknown;           // text: the nearest known key, or empty
  std::vector<KeyNote> unreadable;  // known keys whose value says nothing: text: why ("no whole number", "$N unset")
  std::vector<KeyNote> corrected;   // old or misspelt names, each also in a list above; text: right name, since when
  std::vector<KeyNote> conflicts;   // set twice to different values: text: which one holds and where the other is
};

}  // namespace headroom::doctor
