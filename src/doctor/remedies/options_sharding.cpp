// Options for several GPUs, the host and the disk.
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum OptionLine::Form;

constexpr OptionLine kLines[] = {
    {"shard", hf_trainer, text, "torchrun --nproc_per_node {gpus} ... with fsdp=\"full_shard auto_wrap\""},
    {"shard", trl, text,
     "accelerate launch --config_file fsdp2.yaml --num_processes {gpus} ... (trl sft: --accelerate_config fsdp2)"},
    {"shard", axolotl, keys, "deepspeed=deepspeed_configs/zero3.json"},
    {"shard", llamafactory, keys, "deepspeed=examples/deepspeed/ds_z3_config.json"},
    {"shard", oumi, keys, "fsdp.enable_fsdp=True; fsdp.sharding_strategy=FULL_SHARD"},
    {"shard", accelerate, keys, "{launcher}num_processes={gpus}; {full_shard}"},
    {"shard", deepspeed, text, "\"zero_optimization\": {\"stage\": 3}, deepspeed --num_gpus {gpus}"},
    {"shard", litgpt, keys, "devices={gpus}", "devices = {gpus} (today: --devices {gpus})"},
    {"shard", torchtune, text, "tune run --nproc_per_node {gpus} {recipe}_finetune_distributed"},
    {"shard", pytorch_script, text,
     "torchrun --nproc_per_node {gpus}; fully_shard(layer) per layer, then fully_shard(model)"},
    {"shard-more", hf_trainer, keys, "fsdp=full_shard auto_wrap"},
    {"shard-more", oumi, keys, "fsdp.sharding_strategy=FULL_SHARD"},
    {"shard-more", accelerate, keys, "{full_shard}"},
    {"shard-more", deepspeed, keys, "zero_optimization.stage=3"},
    {"shard-more", axolotl, keys, "deepspeed=deepspeed_configs/zero3.json"},
    {"shard-more", llamafactory, keys, "deepspeed=examples/deepspeed/ds_z3_config.json"},
    {"shard-more", torchtune, keys, "fsdp_reshard_after_forward=True"},
    {"shard-more", litgpt, missing, "LitGPT's FSDP shards all already"},
    {"shard-more", pytorch_script, text, "fully_shard(module, reshard_after_forward=True)"},
    {"offload-optimizer", deepspeed, keys,
     "zero_optimization.stage={stage}; zero_optimization.offload_optimizer.device=cpu"},
    {"offload-optimizer", hf_trainer, text,
     "deepspeed=\"ds.json\" with \"zero_optimization\": {\"stage\": {stage}, \"offload_optimizer\": {\"device\": "
     "\"cpu\"}}"},
    {"offload-optimizer", axolotl, text, "deepspeed: a zero2.json with \"offload_optimizer\": {\"device\": \"cpu\"}"},
    {"offload-optimizer", llamafactory, keys, "deepspeed=examples/deepspeed/ds_z2_offload_config.json"},
    {"offload-optimizer", accelerate, keys, "deepspeed_config.offload_optimizer_device=cpu"},
    {"offload-optimizer", oumi, keys,
     "deepspeed.enable_deepspeed=True; deepspeed.zero_stage=ZERO_2; "
     "deepspeed.offload_optimizer.device=cpu"},
    {"offload-optimizer", litgpt, missing,
     "no option in LitGPT: cpu_offload=False is a literal of FSDPStrategy(...) in litgpt/finetune/*.py; edit it"},
    {"offload-optimizer", torchtune, keys, "optimizer._component_=torchao.optim.CPUOffloadOptimizer"},
    {"offload-optimizer", pytorch_script, text,
     "torchao.optim.CPUOffloadOptimizer(params, torch.optim.AdamW, fused=True)"},
    {"offload-parameters", deepspeed, keys,
     "zero_optimization.stage=3; zero_optimization.offload_param.device=cpu; "
     "zero_optimization.offload_optimizer.device=cpu"},
    {"offload-parameters", hf_trainer, keys, "{hf}"},
    {"offload-parameters", axolotl, keys, "deepspeed=deepspeed_configs/zero3_bf16_cpuoffload_all.json"},
    {"offload-parameters", llamafactory, keys, "deepspeed=examples/deepspeed/ds_z3_offload_config.json"},
    {"offload-parameters", accelerate, keys, "{accelerate}"},
    {"offload-parameters", oumi, keys, "{oumi}"},
    {"offload-parameters", torchtune, keys, "fsdp_cpu_offload=True"},
    {"offload-parameters", litgpt, missing,
     "no option in LitGPT: cpu_offload=False is a literal of FSDPStrategy(...) in litgpt/finetune/*.py; edit it"},
    {"offload-parameters", pytorch_script, text, "fully_shard(module, offload_policy=CPUOffloadPolicy())"},
    {"offload-nvme", deepspeed, keys,
     "zero_optimization.stage=3; zero_optimization.offload_param.device=nvme; "
     "zero_optimization.offload_param.nvme_path=/local_nvme; zero_optimization.offload_optimizer.device=nvme; "
     "zero_optimization.offload_optimizer.nvme_path=/local_nvme"},
    {"offload-nvme", hf_trainer, text,
     "deepspeed=\"ds.json\" with stage 3 and \"offload_param\": {\"device\": \"nvme\", \"nvme_path\": ...}"},
    {"offload-nvme", litgpt, missing, "not in LitGPT: DeepSpeed ZeRO-Infinity has it"},
    {"offload-nvme", torchtune, missing, "not in torchtune: DeepSpeed ZeRO-Infinity has it"},
    {"offload-nvme", oumi, text,
     "deepspeed.deepspeed_config_path: ds.json with stage 3 and \"offload_param\": {\"device\": \"nvme\", "
     "\"nvme_path\": ...}"},
    {"offload-nvme", pytorch_script, missing, "plain PyTorch has no disk tier: DeepSpeed ZeRO-Infinity has it"},
    {"no-prefetch", hf_trainer, text,
     "fsdp_config={\"backward_prefetch\": \"no_prefetch\", \"forward_prefetch\": false}"},
    {"no-prefetch", oumi, keys, "fsdp.backward_prefetch=NO_PREFETCH; fsdp.forward_prefetch=False"},
    {"no-prefetch", accelerate, keys,
     "fsdp_config.fsdp_backward_prefetch=NO_PREFETCH; fsdp_config.fsdp_forward_prefetch=False"},
    {"no-prefetch", deepspeed, keys,
     "zero_optimization.stage3_prefetch_bucket_size=0; zero_optimization.overlap_comm=False"},
    {"no-prefetch", litgpt, missing, "a literal of FSDPStrategy(...) in LitGPT: pass backward_prefetch=None there"},
    {"no-prefetch", torchtune, missing, "FSDP2 prefetches implicitly: module.set_modules_to_backward_prefetch([])"},
    {"no-prefetch", pytorch_script, text, "FSDP(..., backward_prefetch=None, forward_prefetch=False)"},
    {"smaller-buckets", deepspeed, keys,
     "zero_optimization.reduce_bucket_size=50000000; zero_optimization.allgather_bucket_size=50000000"},
    {"smaller-buckets", oumi, keys, "deepspeed.reduce_bucket_size=50000000; deepspeed.allgather_bucket_size=50000000"},
    {"smaller-buckets", hf_trainer, text, "reduce_bucket_size 5e7, allgather_bucket_size 5e7 in the DeepSpeed file"},
    {"smaller-buckets", pytorch_script, text, "DistributedDataParallel(..., bucket_cap_mb=10)"},
    {"context-parallel", axolotl, keys, "context_parallel_size={gpus}"},
    {"context-parallel", oumi, missing,
     "Oumi has no ring attention (its page announced one for 0.2.0): TRL or axolotl, or DeepSpeed's ALST"},
    {"context-parallel", trl, text, "accelerate config parallelism_config_cp_size: {gpus} (TRL >= 0.24)"},
    {"context-parallel", accelerate, keys, "parallelism_config.parallelism_config_cp_size={gpus}"},
    {"context-parallel", hf_trainer, text, "accelerate config parallelism_config_cp_size: {gpus}"},
    {"context-parallel", llamafactory, missing, "not in LLaMA-Factory: TRL or axolotl have it"},
    {"context-parallel", neox, missing,
     "not in GPT-NeoX: model-parallel-size with sequence_parallel splits a part of it"},
    {"context-parallel", deepspeed, text, "\"sequence_parallel_size\": {gpus} (Ulysses; DeepSpeed >= 0.17)"},
    {"context-parallel", litgpt, missing, "not in LitGPT"},
    {"context-parallel", torchtune, keys, "context_parallel_dim={gpus}"},
    {"context-parallel", pytorch_script, text,
     "torch.distributed.tensor.experimental.context_parallel(mesh, buffers=...)"},
    {"ddp", pytorch_script, text,
     "torchrun --nproc_per_node {gpus} with DistributedDataParallel instead of nn.DataParallel"},
    {"bucket-view", hf_trainer, missing, "no option in the Trainer: fsdp shards the gradients instead"},
    {"bucket-view", pytorch_script, text, "DistributedDataParallel(..., gradient_as_bucket_view=True)"},
    {"larger-gpu", pytorch_script, text, "{gpu}"},
};

}  // namespace

std::span<const OptionLine> sharding_options() { return kLines; }

}  // namespace headroom::doctor
