#include <fmt/format.h>

#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// "auto": the trainer that reads the file sets the value.
template <Apply Set>
std::string_view unless_auto(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return lower(setting.text) == "auto" ? std::string_view() : Set(draft, setting, rule);
}

std::string_view offload_by_flag(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<bool> on = truth(setting);
  if (!on) return "neither true nor false";
  std::optional<Offload>& field =
      rule.field == "offload_parameters" ? draft.job.parallel.offload_parameters : draft.job.parallel.offload_optimizer;
  draft.set(field, *on ? Offload::cpu : Offload::none, std::string(rule.field), setting.origin);
  draft.correct(setting.origin,
                fmt::format("{}: {{\"device\": \"cpu\"}}: the flag is deprecated since ZeRO-Infinity (2021)",
                            rule.field == "offload_parameters" ? "offload_param" : "offload_optimizer"),
                setting.text);
  return {};
}

constexpr KeyRule kRules[] = {
    {"train_micro_batch_size_per_gpu", unless_auto<set_count>, "micro_batch"},
    {"train_batch_size", unless_auto<set_count>, "global_batch"},
    {"gradient_accumulation_steps", unless_auto<set_count>, "accumulation"},
    {"gradient_clipping", unless_auto<set_real>, "max_grad_norm"},
    {"fp16", unless_auto<remember>, "ds.fp16"},
    {"bf16", unless_auto<remember>, "ds.bf16"},
    {"fp16.enabled", unless_auto<remember>, "ds.fp16"},
    {"bf16.enabled", unless_auto<remember>, "ds.bf16"},
    {"fp16.fp16", remember, "ds.fp16"},
    {"fp16.fp16_master_weights_and_grads", remember, "ds.half_masters"},
    {"bf16.bf16_master_weights_and_grads", remember, "ds.half_masters"},
    {"bf16.bf16_optimizer_states", remember, "ds.half_states"},
    {"bf16.immediate_grad_update", set_extra, "extras.immediate_grad_update"},
    {"fp8.enabled", unless_auto<remember>, "ds.fp8"},
    {"data_types.grad_accum_dtype", set_extra, "extras.grad_accum_dtype"},
    {"torch_autocast.enabled", remember, "ds.torch_autocast"},
    {"torch_autocast.dtype", set_extra, "extras.torch_autocast_dtype"},
    {"optimizer.type", unless_auto<set_optimizer>, "optimizer"},
    {"optimizer.params.torch_adam", set_extra, "extras.torch_adam"},
    {"zero_optimization.stage", set_zero_stage, "sharding"},
    {"zero_optimization.offload_optimizer.device", set_offload_optimizer, "offload_optimizer"},
    {"zero_optimization.offload_param.device", set_offload_parameters, "offload_parameters"},
    {"zero_optimization.cpu_offload", offload_by_flag, "offload_optimizer"},
    {"zero_optimization.cpu_offload_params", offload_by_flag, "offload_parameters"},
    {"zero_optimization.cpu_offload_param", offload_by_flag, "offload_parameters"},
    {"zero_optimization.offload_optimizer.pin_memory", set_extra, "extras.offload_pin_memory"},
    {"zero_optimization.offload_param.pin_memory", set_extra, "extras.offload_pin_memory"},
    {"zero_optimization.cpu_offload_use_pin_memory", set_extra, "extras.offload_pin_memory"},
    {"zero_optimization.offload_optimizer.buffer_count", set_buffer, "buffers.offload_optimizer.buffer_count"},
    {"zero_optimization.offload_optimizer.ratio", set_extra, "extras.offload_ratio"},
    {"zero_optimization.offload_param.buffer_count", set_buffer, "buffers.offload_param.buffer_count"},
    {"zero_optimization.offload_param.buffer_size", set_buffer, "buffers.offload_param.buffer_size"},
    {"zero_optimization.offload_param.max_in_cpu", set_buffer, "buffers.offload_param.max_in_cpu"},
    {"zero_optimization.overlap_comm", set_extra, "extras.overlap_comm"},
    {"zero_optimization.contiguous_gradients", set_extra, "extras.contiguous_gradients"},
    {"zero_optimization.reduce_scatter", set_extra, "extras.reduce_scatter"},
    {"zero_optimization.reduce_bucket_size", unless_auto<set_buffer>, "buffers.reduce_bucket_size"},
    {"zero_optimization.allgather_bucket_size", unless_auto<set_buffer>, "buffers.allgather_bucket_size"},
    {"zero_optimization.allgather_partitions", set_extra, "extras.allgather_partitions"},
    {"zero_optimization.sub_group_size", unless_auto<set_buffer>, "buffers.sub_group_size"},
    {"zero_optimization.stage3_prefetch_bucket_size", unless_auto<set_buffer>, "buffers.stage3_prefetch_bucket_size"},
    {"zero_optimization.stage3_param_persistence_threshold", unless_auto<set_buffer>,
     "buffers.stage3_param_persistence_threshold"},
    {"zero_optimization.stage3_model_persistence_threshold", unless_auto<set_buffer>,
     "buffers.stage3_model_persistence_threshold"},
    {"zero_optimization.stage3_max_live_parameters", unless_auto<set_buffer>, "buffers.stage3_max_live_parameters"},
    {"zero_optimization.stage3_max_reuse_distance", unless_auto<set_buffer>, "buffers.stage3_max_reuse_distance"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", set_extra, "extras.gather_on_save"},
    {"zero_optimization.round_robin_gradients", set_extra, "extras.round_robin_gradients"},
    {"zero_optimization.zero_hpz_partition_size", set_buffer, "buffers.zero_hpz_partition_size"},
    {"zero_optimization.mics_shard_size", set_extra, "extras.mics_shard_size"},
    {"zero_optimization.zero_quantized_weights", set_extra, "extras.zero_quantized_weights"},
    {"zero_optimization.zero_quantized_nontrainable_weights", set_extra, "extras.zero_quantized_weights"},
    {"zero_optimization.zero_quantized_gradients", set_extra, "extras.zero_quantized_gradients"},
    {"zero_optimization.memory_efficient_linear", set_extra, "extras.memory_efficient_linear"},
    {"zero_optimization.leaf_module*", set_extra, "extras.leaf_modules"},
    {"activation_checkpointing.partition_activations", set_extra, "extras.partition_activations"},
    {"activation_checkpointing.cpu_checkpointing", set_truth, "activation_offload"},
    {"activation_checkpointing.contiguous_memory_optimization", set_extra, "extras.contiguous_checkpoints"},
    {"activation_checkpointing.number_checkpoints", set_extra, "extras.number_checkpoints"},
    {"zero_force_ds_cpu_optimizer", set_extra, "extras.force_cpu_optimizer"},
    {"compile.enabled", set_truth, "compile"},
    {"compile.disable", set_opposite, "compile"},
    {"compile.deepcompile", set_extra, "extras.deepcompile"},
    {"tensor_parallel.autotp_size", set_count, "tensor_parallel"},
    {"tensor_parallel.tp.tp_size", set_count, "tensor_parallel"},
    {"sequence_parallel_size", set_count, "context_parallel"},
    {"pipeline.stages", unless_auto<set_count>, "pipeline_parallel"},
    {"pipeline.activation_checkpoint_interval", set_extra, "extras.checkpoint_interval"},
    {"autotuning.enabled", set_extra, "extras.autotuning"},
    {"curriculum_learning*", set_extra, "extras.curriculum_learning"},
    {"sparse_attention*", set_extra, "extras.sparse_attention"},
    {"compression_training*", set_extra, "extras.compression_training"},
    {"quantize_training*", set_extra, "extras.compression_training"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"scales the loss; takes no memory",
     "fp16.loss_scale fp16.loss_scale_window fp16.initial_scale_power fp16.hysteresis fp16.min_loss_scale "
     "fp16.consecutive_hysteresis fp16.auto_cast fp16.min_scale"},
    {"the arithmetic of the optimizer, not its states",
     "optimizer.params.lr optimizer.params.betas optimizer.params.eps optimizer.params.weight_decay "
     "optimizer.params.adam_w_mode optimizer.params.bias_correction optimizer.params.momentum "
     "optimizer.params.max_grad_norm optimizer.params.freeze_step optimizer.params.cuda_aware "
     "optimizer.params.comm_backend_name optimizer.legacy_fusion optimizer.params.amsgrad"},
    {"the learning rate takes no memory", "scheduler.*"},
    {"printing and timing",
     "steps_per_print wall_clock_breakdown dump_state flops_profiler.* comms_logger.* comms_config.* monitor_config.* "
     "tensorboard.* wandb.* csv_monitor.* comet.* memory_breakdown prescale_gradients_verbose"},
    {"a check, no allocation", "zero_allow_untested_optimizer zero_optimization.log_trace_cache_warnings"},
    {"how gradients travel; their buffers are counted by bucket size",
     "prescale_gradients gradient_predivide_factor sparse_gradients fp32_allreduce communication_data_type "
     "seq_parallel_communication_data_type seq_parallel_comm_data_type disable_allgather "
     "zero_optimization.use_multi_rank_bucket_allreduce zero_optimization.use_all_reduce_for_fetch_params "
     "zero_optimization.ignore_unused_parameters zero_optimization.legacy_stage1"},
    {"reading and writing checkpoints streams",
     "checkpoint.* zero_optimization.load_from_fp32_weights zero_optimization.elastic_checkpoint "
     "zero_optimization.pipeline_loading_checkpoint load_universal_checkpoint elasticity.*"},
    {"which nvme file or thread moves the bytes",
     "zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path "
     "zero_optimization.offload_optimizer.pipeline_read zero_optimization.offload_optimizer.pipeline_write "
     "zero_optimization.offload_optimizer.fast_init zero_optimization.offload_optimizer.pipeline aio.* "
     "zero_optimization.module_granularity_threshold zero_optimization.override_module_apply"},
    {"chooses what the autotuner tries", "autotuning.*"},
    {"which compiler backend", "compile.backend compile.kwargs*"},
    {"which devices, not how many are used by one process", "cuda_visible_devices hostfile include exclude"},
    {"profiling of the checkpointing",
     "activation_checkpointing.profile activation_checkpointing.synchronize_checkpoint_boundary"},
    {"data order and routing",
     "data_efficiency.* dataloader_drop_last data_sampling.* progressive_layer_drop.* eigenvalue.*"},
    {"Apex's amp was removed; HF and PyTorch ignore it", "amp.*"},
};

constexpr Renamed kRenamed[] = {
    {"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters",
     "DeepSpeed reads the name with stage3_ in JSON files"},
    {"zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance",
     "DeepSpeed reads the name with stage3_ in JSON files"},
    {"zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size",
     "DeepSpeed reads the name with stage3_ in JSON files"},
    {"zero_optimization.param_persistence_threshold", "zero_optimization.stage3_param_persistence_threshold",
     "DeepSpeed reads the name with stage3_ in JSON files"},
    {"zero_optimization.gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save",
     "DeepSpeed reads the name with stage3_ in JSON files"},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save", "DeepSpeed 0.6; the old name is deprecated"},
    {"bfloat16.enabled", "bf16.enabled", "DeepSpeed 0.6.1; the old name still works"},
    {"train_micro_batch_size", "train_micro_batch_size_per_gpu", "never another name"},
};

void finish(Draft& draft) {
  finish_autocast(draft, "ds.bf16", "ds.fp16", "ds.fp8");
  if (draft.fact_truth("ds.half_masters").value_or(false))
    draft.set_extra("half_masters", "true", draft.fact("ds.half_masters")->origin);
  if (draft.fact_truth("ds.half_states").value_or(false))
    draft.set(draft.job.optimizer.dtype, std::string("bfloat16"), "optimizer_dtype",
              draft.fact("ds.half_states")->origin);
  // DeepSpeed's fp16 and bf16 modes store the module's weights in 16 bits, with float32 master weights, without
  // autocast.
  for (const auto& [name, dtype] : {std::pair("ds.bf16", "bfloat16"), std::pair("ds.fp16", "float16")})
    if (draft.fact_truth(name).value_or(false))
      draft.imply(draft.job.precision.weights, std::string(dtype), "weight_dtype", draft.fact(name)->origin);
}

constexpr Dialect kDialect = {System::deepspeed, "DeepSpeed", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& deepspeed_dialect() { return kDialect; }

}  // namespace headroom::doctor
