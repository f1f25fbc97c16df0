#include "doctor/config/defaults.h"

#include <algorithm>

namespace headroom::doctor {
namespace {

using Text = std::string_view;

SystemDefaults pytorch_defaults() {
  SystemDefaults d;
  d.micro_batch = {1, "torch/utils/data/dataloader.py: DataLoader.batch_size"};
  d.accumulation = {1, "a plain training loop"};
  d.eval_batch = {std::nullopt, "the training batch"};
  d.sequence = {std::nullopt, "the data"};
  d.sequence_rule = SequenceRule::data;
  d.weight_dtype = {Text("float32"), "torch.get_default_dtype(); from_pretrained before transformers 5"};
  d.autocast = {Text("none"), "autocast is opt-in"};
  d.optimizer = {Text("adamw"), "assumed: the most common"};
  d.attention = {Text("sdpa"), "transformers 4.36 with PyTorch 2.1.1; eager before"};
  d.checkpointing = {false, "opt-in"};
  d.packing = {false, "opt-in"};
  d.chunked_loss = {false, "torch.nn.functional.cross_entropy takes all logits"};
  d.compile = {false, "opt-in"};
  d.pin_memory = {false, "torch/utils/data/dataloader.py: DataLoader.pin_memory"};
  d.max_grad_norm = {0.0, "clipping is opt-in"};
  d.dataloader_workers = {0, "torch/utils/data/dataloader.py: DataLoader.num_workers"};
  d.several_gpus = {Sharding::ddp, "torchrun starts one process per device"};
  d.lora_rank = {8, "peft/tuners/lora/config.py: LoraConfig.r"};
  d.lora_alpha = {8.0, "peft/tuners/lora/config.py: LoraConfig.lora_alpha"};
  d.lora_targets = {Text("model"), "peft/utils/constants.py: by family; q_proj and v_proj for Llama"};
  return d;
}

SystemDefaults hf_defaults() {
  SystemDefaults d = pytorch_defaults();
  d.micro_batch = {8, "transformers/training_args.py: per_device_train_batch_size"};
  d.accumulation = {1, "transformers/training_args.py: gradient_accumulation_steps"};
  d.eval_batch = {8, "transformers/training_args.py: per_device_eval_batch_size"};
  d.weight_dtype = {Text("float32"), "from_pretrained before transformers 5; the checkpoint's own (\"auto\") since 5"};
  d.optimizer = {Text("adamw"), "transformers/training_args.py: optim adamw_torch, fused since PyTorch 2.8"};
  d.pin_memory = {true, "transformers/training_args.py: dataloader_pin_memory"};
  d.max_grad_norm = {1.0, "transformers/training_args.py: max_grad_norm"};
  return d;
}

SystemDefaults trl_defaults() {
  SystemDefaults d = hf_defaults();
  d.sequence = {1024,
                "trl/trainer/sft_config.py: max_length (none in 0.15 to 0.17's DPO and GRPO: prompts are capped)"};
  d.sequence_rule = SequenceRule::fixed;
  d.autocast = {Text("bfloat16"), "trl/trainer/base_config.py: bf16 unless fp16 is set"};
  d.checkpointing = {true, "trl/trainer/base_config.py: gradient_checkpointing; false before 0.20"};
  d.chunked_loss = {false,
                    "trl/trainer/sft_config.py: loss_type; chunked_nll by default only where its trainer takes it"};
  d.lora_rank = {16, "trl/trainer/model_config.py: lora_r"};
  d.lora_alpha = {32.0, "trl/trainer/model_config.py: lora_alpha"};
  return d;
}

SystemDefaults litgpt_defaults() {
  SystemDefaults d = pytorch_defaults();
  d.micro_batch = {1, "litgpt/finetune/lora.py and full.py: train.micro_batch_size; 4 for pretrain"};
  d.global_batch = {16, "litgpt/finetune/lora.py and full.py: train.global_batch_size; 512 for pretrain"};
  d.accumulation = {std::nullopt, "global_batch_size / devices / micro_batch_size"};
  d.eval_batch = {std::nullopt, "the micro-batch"};
  d.sequence_rule = SequenceRule::model_maximum;
  d.sequence = {std::nullopt, "litgpt: the longest sample, at most the model's block size"};
  d.weight_dtype = {Text("float32"), "litgpt/utils.py: bf16-mixed for training, 16-mixed without bfloat16 units"};
  d.autocast = {Text("bfloat16"), "litgpt/utils.py: get_default_supported_precision(training=True)"};
  d.optimizer = {Text("adamw"), "litgpt/finetune/lora.py: optimizer"};
  d.chunked_loss = {true, "litgpt/utils.py: chunked_cross_entropy with chunks of 128 rows"};
  d.several_gpus = {Sharding::zero3, "litgpt/finetune: FSDPStrategy, HYBRID_SHARD but for finetune_full"};
  d.lora_rank = {8, "litgpt/finetune/lora.py: lora_r"};
  d.lora_alpha = {16.0, "litgpt/finetune/lora.py: lora_alpha"};
  d.lora_targets = {Text("q_proj,v_proj"), "litgpt/finetune/lora.py: lora_query, lora_value"};
  return d;
}

SystemDefaults oumi_defaults() {
  SystemDefaults d = hf_defaults();
  d.micro_batch = {8, "oumi/core/configs/params/training_params.py: per_device_train_batch_size"};
  d.eval_batch = {8, "oumi/core/configs/params/training_params.py: per_device_eval_batch_size"};
  d.sequence = {std::nullopt, "oumi/core/configs/params/model_params.py: model_max_length none: the tokenizer's"};
  d.sequence_rule = SequenceRule::model_maximum;
  d.weight_dtype = {Text("checkpoint"), "oumi/core/configs/params/model_params.py: torch_dtype_str auto"};
  d.autocast = {Text("none"), "oumi/core/configs/params/training_params.py: mixed_precision_dtype NONE"};
  d.checkpointing = {false, "oumi/core/configs/params/training_params.py: enable_gradient_checkpointing"};
  d.lora_rank = {8, "oumi/core/configs/params/peft_params.py: lora_r"};
  d.lora_alpha = {8.0, "oumi/core/configs/params/peft_params.py: lora_alpha"};
  return d;
}

SystemDefaults axolotl_defaults() {
  SystemDefaults d = hf_defaults();
  d.micro_batch = {1, "axolotl/utils/schemas/training.py: micro_batch_size"};
  d.eval_batch = {std::nullopt, "axolotl: the micro-batch"};
  d.sequence = {512, "axolotl/utils/schemas/config.py: sequence_len"};
  d.sequence_rule = SequenceRule::fixed;
  d.weight_dtype = {Text("bfloat16"), "axolotl loads in its torch_dtype: bfloat16 with bf16, float16 with fp16"};
  d.autocast = {Text("bfloat16"), "axolotl/utils/schemas/config.py: bf16 auto"};
  d.optimizer = {Text("adamw"), "axolotl/utils/schemas/training.py: optimizer adamw_torch_fused"};
  d.checkpointing = {false, "axolotl/utils/schemas/config.py: gradient_checkpointing"};
  d.lora_rank = {8, "PEFT's, where lora_r is absent"};
  d.lora_alpha = {16.0, "axolotl's examples; PEFT's is 8"};
  return d;
}

SystemDefaults llamafactory_defaults() {
  SystemDefaults d = hf_defaults();
  d.sequence = {2048, "llamafactory/hparams/data_args.py: cutoff_len"};
  d.sequence_rule = SequenceRule::fixed;
  d.weight_dtype = {Text("checkpoint"),
                    "llamafactory/hparams/parser.py: compute_dtype by bf16/fp16, else the checkpoint's"};
  d.checkpointing = {true, "llamafactory/hparams/model_args.py: disable_gradient_checkpointing false"};
  d.attention = {Text("sdpa"), "llamafactory/hparams/model_args.py: flash_attn auto"};
  d.lora_rank = {8, "llamafactory/hparams/finetuning_args.py: lora_rank"};
  d.lora_alpha = {16.0, "llamafactory/hparams/finetuning_args.py: lora_alpha = 2 lora_rank"};
  d.lora_targets = {Text("all-linear"), "llamafactory/hparams/finetuning_args.py: lora_target all"};
  return d;
}

SystemDefaults torchtune_defaults() {
  SystemDefaults d = pytorch_defaults();
  d.micro_batch = {2, "torchtune's recipes state it; 2 is the usual"};
  d.sequence = {std::nullopt, "torchtune: tokenizer.max_seq_len null: the longest sample"};
  d.sequence_rule = SequenceRule::data;
  d.weight_dtype = {Text("bfloat16"), "torchtune/training/precision.py: get_dtype(None)"};
  d.autocast = {Text("none"), "torchtune trains in the weights' own type"};
  d.chunked_loss = {true, "torchtune's recipes: LinearCrossEntropyLoss, CEWithChunkedOutputLoss"};
  d.several_gpus = {Sharding::zero3, "torchtune's distributed recipes: fully_shard"};
  d.lora_rank = {8, "torchtune/models: lora_rank"};
  d.lora_alpha = {16.0, "torchtune/models: lora_alpha"};
  d.lora_targets = {Text("q_proj,v_proj"), "the recipe's lora_attn_modules"};
  return d;
}

SystemDefaults neox_defaults() {
  SystemDefaults d = pytorch_defaults();
  d.micro_batch = {1, "megatron/neox_arguments: train_micro_batch_size_per_gpu has to follow from the batch"};
  d.accumulation = {1, "megatron/neox_arguments/deepspeed_args.py: gradient_accumulation_steps"};
  d.sequence = {2048, "megatron/neox_arguments: seq_length has to be given"};
  d.sequence_rule = SequenceRule::fixed;
  d.weight_dtype = {Text("float16"), "megatron/neox_arguments: precision follows the fp16 section"};
  d.autocast = {Text("none"), "DeepSpeed's half-precision engine, float32 masters"};
  d.attention = {Text("eager"), "megatron/neox_arguments: attention_config global"};
  d.max_grad_norm = {1.0, "megatron/neox_arguments/deepspeed_args.py: gradient_clipping"};
  d.dataloader_workers = {2, "megatron/neox_arguments/neox_args.py: num_workers"};
  return d;
}

SystemDefaults vllm_defaults() {
  SystemDefaults d;
  d.weight_dtype = {Text("checkpoint"), "vllm/config/model.py: dtype auto (float32 becomes float16 or bfloat16)"};
  d.gpu_memory_utilization = {0.92, "vllm/config/cache.py: gpu_memory_utilization; 0.9 up to 0.16 at least"};
  d.max_model_len = {std::nullopt, "vllm/config/model.py: the model's own context"};
  d.max_sequences = {256, "vllm/engine/arg_utils.py: 256, 1024 on GPUs of 70 GiB and more for the server"};
  d.max_batched_tokens = {2048, "vllm/engine/arg_utils.py: 2048 for the server, 8192 on GPUs of 70 GiB and more"};
  d.kv_block_size = {16, "vllm/config/cache.py: DEFAULT_BLOCK_SIZE"};
  d.kv_dtype = {Text("auto"), "vllm/config/cache.py: cache_dtype, the weights' type"};
  d.swap_bytes = {int64_t{4} << 30, "vllm/config/cache.py: swap_space 4 GiB; gone with the V0 engine"};
  d.eager = {false, "vllm/config/model.py: enforce_eager"};
  return d;
}

SystemDefaults sglang_defaults() {
  SystemDefaults d;
  d.weight_dtype = {Text("checkpoint"), "sglang/srt/server_args.py: dtype auto"};
  d.gpu_memory_utilization = {std::nullopt,
                              "sglang/srt/server_args.py: mem_fraction_static follows from the GPU's memory, chunked "
                              "prefill and graphs; 0.9 on one large GPU, about 0.85 below"};
  d.max_model_len = {std::nullopt, "sglang/srt/server_args.py: context_length, the model's own"};
  d.kv_block_size = {1, "sglang/srt/server_args.py: page_size"};
  d.kv_dtype = {Text("auto"), "sglang/srt/server_args.py: kv_cache_dtype"};
  d.max_batched_tokens = {16384, "sglang/srt/server_args.py: max_prefill_tokens"};
  d.eager = {false, "sglang/srt/server_args.py: disable_cuda_graph"};
  return d;
}

SystemDefaults llama_server_defaults() {
  SystemDefaults d;
  d.weight_dtype = {Text("checkpoint"), "the GGUF file"};
  d.max_model_len = {std::nullopt, "llama.cpp tools/server/README.md: ctx-size 0: the model's own; 4096 before 2025"};
  d.max_batched_tokens = {512, "llama.cpp tools/server/README.md: ubatch-size"};
  d.gpu_layers = {std::nullopt, "llama.cpp tools/server/README.md: n-gpu-layers auto (--fit on); 0 before 2025"};
  d.kv_dtype = {Text("f16"), "llama.cpp tools/server/README.md: cache-type-k, cache-type-v"};
  d.max_sequences = {std::nullopt, "llama.cpp tools/server/README.md: parallel auto; 1 before 2025"};
  d.attention = {Text("flash_attention"), "llama.cpp tools/server/README.md: flash-attn auto"};
  d.eager = {false, "CUDA graphs where the build has them"};
  return d;
}

SystemDefaults tgi_defaults() {
  SystemDefaults d;
  d.weight_dtype = {Text("float16"), "text-generation-launcher: dtype"};
  d.gpu_memory_utilization = {1.0, "text-generation-launcher: cuda-memory-fraction"};
  d.max_sequences = {128, "text-generation-launcher: max-concurrent-requests"};
  d.kv_block_size = {16, "text-generation-inference's paged attention"};
  d.eager = {false, "text-generation-launcher: cuda-graphs"};
  return d;
}

}  // namespace

SystemDefaults system_defaults(System system) {
  switch (system) {
    case System::hf_trainer:
      return hf_defaults();
    case System::trl:
      return trl_defaults();
    case System::litgpt:
      return litgpt_defaults();
    case System::oumi:
      return oumi_defaults();
    case System::axolotl:
      return axolotl_defaults();
    case System::llamafactory:
      return llamafactory_defaults();
    case System::torchtune:
      return torchtune_defaults();
    case System::neox:
      return neox_defaults();
    case System::vllm:
      return vllm_defaults();
    case System::sglang:
      return sglang_defaults();
    case System::llama_server:
      return llama_server_defaults();
    case System::tgi:
      return tgi_defaults();
    default:
      return pytorch_defaults();
  }
}

SystemDefaults job_defaults(const Job& job) {
  SystemDefaults d = system_defaults(job.system);
  const auto model = job.keys.origins.find("model");
  const bool pretrains = model != job.keys.origins.end() && model->second.key.find("model_name") != std::string::npos;
  if (job.system == System::litgpt && pretrains) {
    d.micro_batch = {4, "litgpt/pretrain.py: train.micro_batch_size"};
    d.global_batch = {512, "litgpt/pretrain.py: train.global_batch_size"};
    d.max_grad_norm = {1.0, "litgpt/pretrain.py: train.max_norm"};
  }
  if (job.system == System::oumi && job.objective == "sft") {
    // trainer_type TRL_SFT runs TRL's trainer with Oumi's own defaults.
    d.max_grad_norm = {1.0, "oumi/core/configs/params/training_params.py: max_grad_norm"};
  }
  // LLaMA-Factory's v1 files have their own arguments.
  const auto batch = job.keys.origins.find("micro_batch");
  if (job.system == System::llamafactory && batch != job.keys.origins.end() &&
      batch->second.key == "micro_batch_size") {
    d.micro_batch = {1, "llamafactory/v1/config/training_args.py: micro_batch_size"};
    d.autocast = {Text("bfloat16"), "llamafactory/v1/config/training_args.py: bf16"};
  }
  return d;
}

int64_t effective_micro_batch(const Job& job) {
  if (job.batch.micro) return std::max<int64_t>(1, *job.batch.micro);
  const SystemDefaults d = job_defaults(job);
  if (job.batch.global) {
    const int64_t devices = std::max<int64_t>(1, job.devices.gpus.value_or(1));
    const int64_t steps = std::max<int64_t>(1, job.batch.accumulation.value_or(1));
    // LitGPT keeps its micro-batch and derives the accumulation; the others divide.
    if (job.system != System::litgpt) return std::max<int64_t>(1, *job.batch.global / devices / steps);
  }
  return d.micro_batch.value.value_or(1);
}

std::optional<int64_t> effective_sequence(const Job& job) {
  if (job.batch.sequence) return job.batch.sequence;
  const SystemDefaults d = job_defaults(job);
  return d.sequence_rule == SequenceRule::fixed ? d.sequence.value : std::nullopt;
}

}  // namespace headroom::doctor
