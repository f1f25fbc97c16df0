// A PyTorch script's own calls, as "call.argument"; python_reader names the calls.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_first_batch(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<int64_t> value = whole_number(setting);
  if (!value || *value < 1) return "not a whole number in range";
  // The first data loader is the one for training.
  if (!draft.job.batch.micro) {
    draft.set(draft.job.batch.micro, *value, "micro_batch", setting.origin);
  } else if (!draft.job.evaluation.batch) {
    draft.set(draft.job.evaluation.batch, *value, "eval_batch", setting.origin);
  }
  return {};
}

std::string_view set_first_workers(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<int64_t> value = whole_number(setting);
  if (!value || *value < 0) return "not a whole number in range";
  draft.imply(draft.job.load.workers, *value, "dataloader_workers", setting.origin);
  return {};
}

std::string_view set_cast(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<std::string> dtype = canonical_dtype(setting.text);
  if (!dtype) return "not a number type";
  draft.set(draft.job.precision.autocast, *dtype, "autocast", setting.origin);
  return {};
}

std::string_view set_autocast_enabled(Draft& draft, const Setting& setting, const KeyRule&) {
  if (truth(setting) == false) draft.set(draft.job.precision.autocast, std::string("none"), "autocast", setting.origin);
  return {};
}

std::string_view set_fp16_scaler(Draft& draft, const Setting& setting, const KeyRule&) {
  if (truth(setting).value_or(true))
    draft.imply(draft.job.precision.autocast, std::string("float16"), "autocast", setting.origin);
  return {};
}

std::string_view set_fsdp_call(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["fsdp.on"] = setting;
  return {};
}

std::string_view set_fsdp_offload(Draft& draft, const Setting& setting, const KeyRule&) {
  Setting value = setting;
  const std::string word = lower(setting.text);
  if (word.find("offload") != std::string::npos)
    value.text = word.find("false") == std::string::npos ? "true" : "false";
  draft.facts["fsdp.offload"] = value;
  return {};
}

std::string_view set_ddp(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.imply(draft.job.parallel.sharding, Sharding::ddp, "sharding", setting.origin);
  return {};
}

std::string_view set_checkpointing_call(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.compute.checkpointing, true, "checkpointing", setting.origin);
  return {};
}

std::string_view set_no_checkpointing_call(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.compute.checkpointing, false, "checkpointing", setting.origin);
  return {};
}

std::string_view set_compile_call(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.compute.compile, truth(setting).value_or(true), "compile", setting.origin);
  return {};
}

std::string_view set_kbit(Draft& draft, const Setting& setting, const KeyRule&) {
  // prepare_model_for_kbit_training turns checkpointing on by default.
  draft.imply(draft.job.compute.checkpointing, true, "checkpointing", setting.origin);
  return {};
}

std::string_view set_cast_weights(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<std::string> dtype = canonical_dtype(setting.text);
  if (!dtype) return {};  // .to("cuda"), .to(device)
  draft.set(draft.job.precision.weights, *dtype, "weight_dtype", setting.origin);
  return {};
}

std::string_view set_accelerator_precision(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<std::string> dtype = canonical_dtype(setting.text);
  draft.set(draft.job.precision.autocast, dtype.value_or("none"), "autocast", setting.origin);
  return {};
}

std::string_view set_peft_call(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["torch.peft_call"] = setting;
  return {};
}

constexpr KeyRule kRules[] = {
    {"DataLoader.batch_size", set_first_batch, "micro_batch"},
    {"DataLoader.num_workers", set_first_workers, "dataloader_workers"},
    {"DataLoader.pin_memory", set_truth, "pin_memory"},
    {"DataLoader.prefetch_factor", set_extra, "extras.prefetch_factor"},
    {"DataLoader.persistent_workers", set_extra, "extras.persistent_workers"},
    {"optimizer", set_optimizer, "optimizer"},
    {"optimizer.fused", set_extra, "extras.optimizer_fused"},
    {"optimizer.foreach", set_extra, "extras.optimizer_foreach"},
    {"optimizer.momentum", set_extra, "extras.momentum"},
    {"optimizer.amsgrad", set_extra, "extras.amsgrad"},
    {"autocast", set_cast, "autocast"},
    {"autocast.dtype", set_cast, "autocast"},
    {"autocast.enabled", set_autocast_enabled, "autocast"},
    {"GradScaler", set_fp16_scaler, "autocast"},
    {"GradScaler.enabled", set_fp16_scaler, "autocast"},
    {"FSDP", set_fsdp_call, "sharding"},
    {"FSDP.sharding_strategy", remember, "fsdp.strategy"},
    {"FSDP.cpu_offload", set_fsdp_offload, "offload_parameters"},
    {"FSDP.offload_policy", set_fsdp_offload, "offload_parameters"},
    {"FSDP.backward_prefetch", set_backward_prefetch, "backward_prefetch"},
    {"FSDP.forward_prefetch", set_truth, "forward_prefetch"},
    {"FSDP.limit_all_gathers", set_truth, "limit_all_gathers"},
    {"FSDP.reshard_after_forward", remember, "fsdp.reshard"},
    {"FSDP.mixed_precision", set_extra, "extras.fsdp_precision"},
    {"FSDP.mp_policy", set_extra, "extras.fsdp_precision"},
    {"FSDP.auto_wrap_policy", set_extra, "extras.wrap_policy"},
    {"FSDP.activation_checkpointing_policy", set_checkpointing_call, "checkpointing"},
    {"FSDP.state_dict_type", set_extra, "extras.state_dict_type"},
    {"FSDP.use_orig_params", set_extra, "extras.use_orig_params"},
    {"FSDP.sync_module_states", set_extra, "extras.sync_module_states"},
    {"MixedPrecision.param_dtype", set_cast, "autocast"},
    {"MixedPrecision.reduce_dtype", set_extra, "extras.fsdp_reduce_dtype"},
    {"MixedPrecision.buffer_dtype", set_extra, "extras.fsdp_buffer_dtype"},
    {"MixedPrecision.output_dtype", set_extra, "extras.fsdp_output_dtype"},
    {"DDP", set_ddp, "sharding"},
    {"DDP.bucket_cap_mb", set_extra, "extras.ddp_bucket_mb"},
    {"DDP.find_unused_parameters", set_extra, "extras.find_unused_parameters"},
    {"DDP.gradient_as_bucket_view", set_extra, "extras.bucket_views"},
    {"DDP.static_graph", set_extra, "extras.ddp_static_graph"},
    {"DataParallel", set_extra, "extras.data_parallel"},
    {"gradient_checkpointing_enable", set_checkpointing_call, "checkpointing"},
    {"gradient_checkpointing_enable.*", set_extra, "extras.checkpointing_options"},
    {"gradient_checkpointing_disable", set_no_checkpointing_call, "checkpointing"},
    {"checkpoint", set_checkpointing_call, "checkpointing"},
    {"checkpoint.use_reentrant", set_extra, "extras.checkpointing_reentrant"},
    {"prepare_model_for_kbit_training", set_kbit, "checkpointing"},
    {"prepare_model_for_kbit_training.use_gradient_checkpointing", set_truth, "checkpointing"},
    {"prepare_model_for_kbit_training.*", set_extra, "extras.checkpointing_options"},
    {"get_peft_model", set_peft_call, "lora"},
    {"compile", set_compile_call, "compile"},
    {"compile.mode", set_extra, "extras.compile_mode"},
    {"compile.backend", set_extra, "extras.compile_backend"},
    {"compile.fullgraph", set_extra, "extras.compile_fullgraph"},
    {"compile.dynamic", set_extra, "extras.compile_dynamic"},
    {"half", set_cast_weights, "weight_dtype"},
    {"to", set_cast_weights, "weight_dtype"},
    {"to.dtype", set_cast_weights, "weight_dtype"},
    {"set_default_dtype", set_cast_weights, "weight_dtype"},
    {"clip_grad_norm_", set_real, "max_grad_norm"},
    {"clip_grad_norm_.max_norm", set_real, "max_grad_norm"},
    {"Accelerator.mixed_precision", set_accelerator_precision, "autocast"},
    {"Accelerator.gradient_accumulation_steps", set_count, "accumulation"},
    {"Accelerator.cpu", set_extra, "extras.use_cpu"},
    {"Accelerator.*", set_extra, "extras.accelerator"},
    {"get_peft_model.*", set_extra, "extras.peft_call"},
    {"deepspeed.initialize.config", refer, "a file"},
    {"deepspeed.initialize.config_params", refer, "a file"},
    {"max_position_embeddings", set_architecture, "architecture.max_positions"},
    {"hidden_size", set_architecture, "architecture.hidden"},
    {"n_embd", set_architecture, "architecture.hidden"},
    {"num_hidden_layers", set_architecture, "architecture.layers"},
    {"n_layer", set_architecture, "architecture.layers"},
    {"num_attention_heads", set_architecture, "architecture.heads"},
    {"n_head", set_architecture, "architecture.heads"},
    {"num_key_value_heads", set_architecture, "architecture.kv_heads"},
    {"intermediate_size", set_architecture, "architecture.intermediate"},
    {"vocab_size", set_architecture, "architecture.vocab"},
    {"empty_cache", set_extra, "extras.empty_cache_call"},
    {"set_per_process_memory_fraction", set_extra, "extras.memory_fraction"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"order and choice of the data",
     "DataLoader.shuffle DataLoader.drop_last DataLoader.sampler DataLoader.batch_sampler DataLoader.collate_fn "
     "DataLoader.worker_init_fn DataLoader.generator DataLoader.timeout DataLoader.dataset "
     "DataLoader.multiprocessing_context "
     "DataLoader.in_order DataLoader.pin_memory_device"},
    {"the arithmetic of the optimizer, not its states",
     "optimizer.lr optimizer.betas optimizer.eps optimizer.weight_decay optimizer.params optimizer.capturable "
     "optimizer.differentiable optimizer.maximize optimizer.nesterov optimizer.dampening optimizer.scale_parameter "
     "optimizer.relative_step optimizer.warmup_init optimizer.clip_threshold optimizer.decay_rate "
     "optimizer.min_8bit_size "
     "optimizer.percentile_clipping optimizer.block_wise optimizer.is_paged optimizer.optim_bits optimizer.alpha "
     "optimizer.centered optimizer.rho optimizer.beta1 optimizer.beta2_decay optimizer.lr_decay"},
    {"kind and growth of the scale; takes no memory",
     "autocast.device_type autocast.cache_enabled GradScaler.device GradScaler.init_scale GradScaler.growth_factor "
     "GradScaler.backoff_factor GradScaler.growth_interval"},
    {"how processes find each other",
     "FSDP.device_id FSDP.process_group FSDP.device_mesh FSDP.mesh FSDP.module FSDP.param_init_fn FSDP.ignored_modules "
     "FSDP.ignored_states FSDP.shard_placement_fn FSDP.ignored_params FSDP.cast_forward_inputs "
     "DDP.device_ids DDP.output_device DDP.process_group DDP.module DDP.broadcast_buffers DDP.dim DDP.init_sync "
     "DDP.check_reduction DDP.delay_all_reduce_named_params DataParallel.device_ids DataParallel.output_device"},
    {"which product of weights is computed", "MixedPrecision.keep_low_precision_grads MixedPrecision.cast_*"},
    {"options of the call that move no bytes",
     "to.device to.non_blocking to.copy to.memory_format checkpoint.preserve_rng_state checkpoint.context_fn "
     "checkpoint.determinism_check checkpoint.debug clip_grad_norm_.norm_type clip_grad_norm_.error_if_nonfinite "
     "clip_grad_norm_.foreach clip_grad_norm_.parameters compile.options compile.disable deepspeed.initialize.*"},
    {"how the model computes, with the same tensors",
     "rope_theta rope_scaling* rope_parameters* rms_norm_eps layer_norm_eps* hidden_act activation_function "
     "bos_token_id eos_token_id pad_token_id initializer_range attention_dropout hidden_dropout* resid_pdrop "
     "embd_pdrop "
     "attn_pdrop tie_word_embeddings use_cache model_type architectures layer_norm_epsilon type_vocab_size"},
};

void finish(Draft& draft) {
  if (draft.fact("fsdp.on")) finish_fsdp(draft);
}

constexpr Dialect kDialect = {System::pytorch_script, "PyTorch", kRules, kIrrelevant, {}, {}, nullptr, finish};

}  // namespace

const Dialect& pytorch_dialect() { return kDialect; }

}  // namespace headroom::doctor
