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
  pytorch_script,
};

enum class Task { train, serve, infer };

// Where a fact was read: file as given by the user, line from 1 (0: a command line), key in the user's own spelling.
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
};

enum class Sharding { none, ddp, zero1, zero2, zero3, hybrid };  // FSDP's FULL_SHARD is zero3, SHARD_GRAD_OP zero2
enum class Offload { none, cpu, nvme };

// A key that was read, and what became of it: none is dropped silently.
struct KeyNote {
  Origin origin;
  std::string text;  // irrelevant: why; unknown: nearest known key or empty; corrected: the right name and since when
};

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

  std::map<std::string, Origin> origins;  // name of a field above -> where it was set
  std::vector<KeyNote> irrelevant, unknown, corrected;
};

}  // namespace headroom::doctor
