// A training or serving job of another system, in terms that are the same for all systems. One reader per system fills
// it from configurations, command lines and scripts; the memory model and the remedies use it.
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

// Where a value was read. File: as given by the user. Line: from 1; 0 for a command line given by itself. Key: in the
// user's spelling, that is the dotted path in YAML and JSON ("training.optimizer"), the option on a command line
// ("--train.micro_batch_size"), or the call and its argument in Python ("TrainingArguments.bf16").
struct Origin {
  std::string file;
  int64_t line = 0;
  std::string key;
};

// What a batch scheduler, container or launcher grants a job.
struct Grant {
  std::optional<int64_t> host_memory_bytes;  // per node
  std::optional<int64_t> cpus;               // per task
  std::optional<int64_t> tasks_per_node;
  std::string partition, time_limit;
};

// The machine that a job asks for.
struct DeviceSettings {
  std::optional<int64_t> gpus, nodes;
  std::string gpu;  // as written; empty when unknown
  Grant grant;
};

struct BatchSettings {
  std::optional<int64_t> micro, accumulation, global, sequence;
  std::optional<bool> packing;
  std::optional<bool> by_length;   // rows of similar length share a batch
  std::optional<bool> finds_size;  // auto_find_batch_size: retries with a smaller batch
};

struct EvaluationSettings {
  std::optional<int64_t> batch;
  std::optional<int64_t> accumulation;  // steps after which predictions are moved to the host
  std::optional<bool> loss_only;        // no logits are kept
};

struct PrecisionSettings {
  std::optional<std::string> weights;       // dtype of the stored weights: float32, bfloat16, float16
  std::optional<std::string> autocast;      // compute dtype of mixed precision: bfloat16, float16, fp8; "none"
  std::optional<std::string> quantization;  // of the base weights: nf4, nf4-dq, fp4, int8, gptq, awq, fp8, none
  std::optional<bool> fake_quantised;       // quantisation-aware training
  bool apex = false;                        // mixed precision by NVIDIA's apex
};

struct OptimizerSettings {
  std::optional<std::string> name;   // canonical: adamw, adamw_8bit, paged_adamw_8bit, adafactor, sgd, lion, ...
  std::optional<std::string> dtype;  // of states where not float32
  std::optional<bool> in_backward, fused;
  std::optional<double> max_grad_norm;
};

// What runs in forward and backward pass, and what is kept between them.
struct ComputeSettings {
  std::optional<std::string> attention;  // eager, sdpa, flash_attention_2, ...
  std::optional<bool> checkpointing;
  std::string checkpointing_kind;  // full, selective, attention, ... if the system has kinds
  std::optional<bool> activation_offload, chunked_loss, compile, liger;
  std::optional<bool> flash_loss_upcast;  // logits kept in float32
  std::optional<bool> no_grad;            // false: inference that saves activations for a backward pass
};

struct LoraSettings {
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  std::vector<std::string> targets;          // empty: the system's default
  std::vector<std::string> modules_to_save;  // trained in full
  bool all_linear = false;                   // the system's word for every linear layer except the head
  bool dora = false;                         // a magnitude vector and a full-size product per target
};

enum class Sharding { none, ddp, zero1, zero2, zero3, hybrid };  // FSDP's FULL_SHARD is zero3, SHARD_GRAD_OP zero2
enum class Offload { none, cpu, nvme };

struct ParallelSettings {
  std::optional<Sharding> sharding;
  std::optional<Offload> offload_parameters, offload_optimizer;
  std::optional<bool> forward_prefetch, backward_prefetch, limit_all_gathers, reshard_after_forward;
  std::optional<int64_t> tensor, pipeline, context, expert;
  std::map<std::string, int64_t> buffers;  // DeepSpeed's element counts: reduce_bucket_size, sub_group_size, ...
  bool deepspeed = false;                  // by a DeepSpeed configuration or launcher
  bool fsdp2 = false;
  bool sharded_save = false;  // each process writes its own part
};

struct LoadSettings {
  std::optional<int64_t> workers;  // of the data loader
  std::optional<bool> pin_memory;
  bool ram_efficient = false;  // one process reads the weights for all others
  bool from_scratch = false;   // random initial weights
};

struct ServingSettings {
  std::optional<double> gpu_memory_utilization;  // vLLM's gpu_memory_utilization, SGLang's mem_fraction_static, ...;
                                                 // the exact meaning depends on the system
  std::optional<int64_t> max_model_len, max_sequences, max_batched_tokens, kv_block_size, kv_cache_bytes, gpu_layers;
  std::optional<int64_t> prefill_chunk;  // SGLang's chunked_prefill_size
  std::optional<int64_t> cpu_offload_bytes, swap_bytes;
  std::optional<std::string> kv_dtype;
  std::optional<bool> eager;  // no graph capture
  std::optional<int64_t> max_new_tokens;
};

struct EnvironmentSettings {
  std::map<std::string, std::string> allocator;  // settings of PYTORCH_ALLOC_CONF and similar variables
  std::map<std::string, std::string> variables;  // other variables set with the command
};

// A key that was read. Every key is kept in one of the lists below.
struct KeyNote {
  Origin origin;
  std::string text;   // see the lists of KeyNotes
  std::string value;  // as written, cut to 200 bytes
};

// What became of the keys. Each key is in exactly one of understood, irrelevant, unknown, unreadable.
struct KeyNotes {
  std::map<std::string, Origin> origins;  // name of a field (job_fields.h) -> where it was set
  std::vector<KeyNote> understood;        // text: the field it sets, or what it selects
  std::vector<KeyNote> irrelevant;        // text: why it takes no memory
  std::vector<KeyNote> unknown;           // text: the nearest known key, or empty
  std::vector<KeyNote>
      unreadable;  // known keys whose value cannot be used; text: why ("not a whole number in range", "$N unset")
  std::vector<KeyNote> corrected;  // old or misspelt names, each also in a list above; text: right name, since when
  std::vector<KeyNote> conflicts;  // set twice to different values; text: which one holds and where the other is
};

// An absent field is stated nowhere; the memory model then uses the system's default and reports it.
struct Job {
  System system = System::unknown;
  Task task = Task::train;
  std::string model;                            // id or path, as written
  std::optional<double> parameters;             // from --params, or stated by the configuration
  std::map<std::string, int64_t> architecture;  // if stated: layers, hidden, heads, kv_heads, vocab, max_positions...
  std::string objective;                        // sft, dpo, kto, orpo, grpo, rloo, reward, ppo, pretrain, distil, ...
  std::vector<std::string> further_models;      // reference, teacher, reward and draft models, as written
  std::string frozen;                           // layers or modules that are not trained, as written
  std::string unseen_script;                    // that a log's command starts; it may set more than the options do
  std::string library;                          // that replaces the model's code in a script: "unsloth"

  DeviceSettings devices;
  BatchSettings batch;
  EvaluationSettings evaluation;
  PrecisionSettings precision;
  OptimizerSettings optimizer;
  ComputeSettings compute;
  std::optional<LoraSettings> lora;
  ParallelSettings parallel;
  LoadSettings load;
  ServingSettings serving;
  EnvironmentSettings environment;
  KeyNotes keys;
};

}  // namespace headroom::doctor
