// Oumi: TrainingConfig, InferenceConfig and their parts (names from src/oumi/core/configs).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_trainer(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string word = lower(setting.text);
  for (const char* objective : {"sft", "dpo", "kto", "grpo", "gkd", "gold"})
    if (word.find(std::string("trl_") + objective) != std::string::npos)
      draft.set(draft.job.objective, std::string(objective), "objective", setting.origin);
  return set_extra(draft, setting, rule);
}

std::string_view set_engine(Draft& draft, const Setting& setting, const KeyRule& rule) {
  draft.job.task = Task::infer;
  return set_extra(draft, setting, rule);
}

std::string_view set_precision(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text.substr(setting.text.rfind('.') + 1));
  const std::optional<std::string> dtype = canonical_dtype(word);
  if (!dtype && word != "none") return "not a number type";
  draft.set(draft.job.precision.autocast, dtype.value_or("none"), "autocast", setting.origin);
  return {};
}

std::string_view infer_tokens(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_count(draft, setting, rule);
}

template <Apply Set>
std::string_view unless_auto(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return lower(setting.text) == "auto" ? std::string_view() : Set(draft, setting, rule);
}

constexpr KeyRule kRules[] = {
    {"model.model_name", set_model, "model"},
    {"model.model_max_length", set_count, "sequence"},
    {"model.torch_dtype_str", set_dtype, "weight_dtype"},
    {"model.attn_implementation", set_attention, "attention"},
    {"model.enable_liger_kernel", set_extra, "extras.liger"},
    {"model.freeze_layers", set_extra, "extras.freeze"},
    {"model.compile", set_truth, "compile"},
    {"model.device_map", set_extra, "extras.device_map"},
    {"model.adapter_model", set_extra, "extras.adapter_model"},
    {"model.shard_for_eval", set_extra, "extras.shard_for_eval"},
    {"model.load_pretrained_weights", set_extra, "extras.load_pretrained_weights"},
    {"model.model_kwargs.quantization_config.quant_method", remember, "oumi.quant_method"},
    {"model.model_kwargs.load_in_4bit", remember, "bnb.4bit"},
    {"model.model_kwargs.load_in_8bit", remember, "bnb.8bit"},
    {"model.model_kwargs.gpu_memory_utilization", set_real, "gpu_memory_utilization"},
    {"model.model_kwargs.tensor_parallel_size", set_count, "tensor_parallel"},
    {"model.model_kwargs.max_num_seqs", set_count, "max_sequences"},
    {"model.model_kwargs.max_model_len", set_count, "max_model_len"},
    {"model.model_kwargs.enforce_eager", set_truth, "eager"},
    {"model.model_kwargs.*", set_extra, "extras.model_kwargs"},
    {"training.trainer_type", set_trainer, "extras.trainer"},
    {"training.use_peft", remember, "oumi.use_peft"},
    {"training.per_device_train_batch_size", set_count, "micro_batch"},
    {"training.per_device_eval_batch_size", set_count, "eval_batch"},
    {"training.gradient_accumulation_steps", set_count, "accumulation"},
    {"training.enable_gradient_checkpointing", set_truth, "checkpointing"},
    {"training.gradient_checkpointing_kwargs.use_reentrant", set_extra, "extras.checkpointing_reentrant"},
    {"training.gradient_checkpointing_kwargs*", set_extra, "extras.checkpointing_options"},
    {"training.optimizer", set_optimizer, "optimizer"},
    {"training.mixed_precision_dtype", set_precision, "autocast"},
    {"training.compile", set_truth, "compile"},
    {"training.max_grad_norm", set_real, "max_grad_norm"},
    {"training.dataloader_num_workers", unless_auto<set_whole>, "dataloader_workers"},
    {"training.dataloader_prefetch_factor", set_extra, "extras.prefetch_factor"},
    {"training.dataloader_persistent_workers", set_extra, "extras.persistent_workers"},
    {"training.empty_device_cache_steps", set_extra, "extras.empty_cache_steps"},
    {"training.ddp_find_unused_parameters", set_extra, "extras.find_unused_parameters"},
    {"training.eval_strategy", set_extra, "extras.eval_strategy"},
    {"training.trainer_kwargs.max_length", set_count, "sequence"},
    {"training.trainer_kwargs.max_seq_length", set_count, "sequence"},
    {"training.trainer_kwargs.*", set_extra, "extras.trainer_kwargs"},
    {"training.grpo.max_completion_length", set_count, "max_new_tokens"},
    {"training.grpo.num_generations", set_extra, "extras.generations"},
    {"training.grpo.use_vllm", set_extra, "extras.vllm"},
    {"training.grpo.vllm_gpu_memory_utilization", set_real, "gpu_memory_utilization"},
    {"training.grpo.*", set_extra, "extras.grpo"},
    {"training.gkd.teacher_model_name_or_path", add_further_model, "further_models"},
    {"peft.lora_r", set_lora_rank, "lora"},
    {"peft.lora_alpha", set_lora_alpha, "lora"},
    {"peft.lora_dropout", set_lora_dropout, "lora"},
    {"peft.lora_target_modules", set_lora_targets, "lora"},
    {"peft.lora_modules_to_save", set_lora_saved, "lora"},
    {"peft.lora_target_parameters", set_extra, "extras.lora_target_parameters"},
    {"peft.lora_exclude_modules", set_extra, "extras.lora_exclude"},
    {"peft.lora_bias", set_extra, "extras.lora_bias"},
    {"peft.q_lora", remember, "oumi.q_lora"},
    {"peft.q_lora_bits", remember, "oumi.q_lora_bits"},
    {"peft.bnb_4bit_quant_type", remember, "bnb.type"},
    {"peft.use_bnb_nested_quant", remember, "bnb.nested"},
    {"peft.bnb_4bit_quant_storage", remember, "bnb.storage"},
    {"peft.bnb_4bit_compute_dtype", remember, "bnb.compute"},
    {"peft.llm_int8_skip_modules", set_extra, "extras.quantization_skips"},
    {"fsdp.enable_fsdp", remember, "oumi.fsdp"},
    {"fsdp.sharding_strategy", remember, "fsdp.strategy"},
    {"fsdp.cpu_offload", remember, "fsdp.offload"},
    {"fsdp.backward_prefetch", set_backward_prefetch, "backward_prefetch"},
    {"fsdp.forward_prefetch", set_truth, "forward_prefetch"},
    {"fsdp.mixed_precision", set_precision, "autocast"},
    {"fsdp.auto_wrap_policy", set_extra, "extras.wrap_policy"},
    {"fsdp.min_num_params", set_extra, "extras.wrap_min_parameters"},
    {"fsdp.transformer_layer_cls", set_extra, "extras.wrap_class"},
    {"fsdp.state_dict_type", set_extra, "extras.state_dict_type"},
    {"fsdp.use_orig_params", set_extra, "extras.use_orig_params"},
    {"fsdp.sync_module_states", set_extra, "extras.sync_module_states"},
    {"deepspeed.enable_deepspeed", remember, "oumi.deepspeed"},
    {"deepspeed.zero_stage", remember, "oumi.zero_stage"},
    {"deepspeed.precision", remember, "oumi.ds_precision"},
    {"deepspeed.deepspeed_config_path", refer, "a file"},
    {"deepspeed.offload_optimizer.device", set_offload_optimizer, "offload_optimizer"},
    {"deepspeed.offload_param.device", set_offload_parameters, "offload_parameters"},
    {"deepspeed.offload_optimizer.pin_memory", set_extra, "extras.offload_pin_memory"},
    {"deepspeed.offload_param.pin_memory", set_extra, "extras.offload_pin_memory"},
    {"deepspeed.offload_optimizer.buffer_count", set_buffer, "buffers.offload_optimizer.buffer_count"},
    {"deepspeed.offload_param.buffer_count", set_buffer, "buffers.offload_param.buffer_count"},
    {"deepspeed.offload_*", set_extra, "extras.offload_detail"},
    {"deepspeed.overlap_comm", set_extra, "extras.overlap_comm"},
    {"deepspeed.contiguous_gradients", set_extra, "extras.contiguous_gradients"},
    {"deepspeed.reduce_scatter", set_extra, "extras.reduce_scatter"},
    {"deepspeed.allgather_partitions", set_extra, "extras.allgather_partitions"},
    {"deepspeed.reduce_bucket_size", unless_auto<set_buffer>, "buffers.reduce_bucket_size"},
    {"deepspeed.allgather_bucket_size", unless_auto<set_buffer>, "buffers.allgather_bucket_size"},
    {"deepspeed.sub_group_size", unless_auto<set_buffer>, "buffers.sub_group_size"},
    {"deepspeed.stage3_prefetch_bucket_size", unless_auto<set_buffer>, "buffers.stage3_prefetch_bucket_size"},
    {"deepspeed.stage3_param_persistence_threshold", unless_auto<set_buffer>,
     "buffers.stage3_param_persistence_threshold"},
    {"deepspeed.stage3_max_live_parameters", unless_auto<set_buffer>, "buffers.stage3_max_live_parameters"},
    {"deepspeed.stage3_max_reuse_distance", unless_auto<set_buffer>, "buffers.stage3_max_reuse_distance"},
    {"deepspeed.stage3_gather_16bit_weights_on_model_save", set_extra, "extras.gather_on_save"},
    {"deepspeed.round_robin_gradients", set_extra, "extras.round_robin_gradients"},
    {"deepspeed.memory_efficient_linear", set_extra, "extras.memory_efficient_linear"},
    {"deepspeed.zero_force_ds_cpu_optimizer", set_extra, "extras.force_cpu_optimizer"},
    {"deepspeed.train_micro_batch_size_per_gpu", unless_auto<set_count>, "micro_batch"},
    {"deepspeed.train_batch_size", unless_auto<set_count>, "global_batch"},
    {"deepspeed.gradient_accumulation_steps", unless_auto<set_count>, "accumulation"},
    {"deepspeed.gradient_clipping", unless_auto<set_real>, "max_grad_norm"},
    {"deepspeed.activation_checkpointing*", set_extra, "extras.ds_activation_checkpointing"},
    {"data.train.pack", set_truth, "packing"},
    {"data.train.datasets[].dataset_kwargs.seq_length", remember, "oumi.data_sequence"},
    {"engine", set_engine, "extras.engine"},
    {"inference_engine", set_engine, "extras.engine"},
    {"tasks[].evaluation_backend", set_engine, "extras.evaluation"},
    {"generation.max_new_tokens", infer_tokens, "max_new_tokens"},
    {"generation.batch_size", set_count, "max_sequences"},
    {"generation.num_beams", set_extra, "extras.generation_num_beams"},
    {"generation.use_cache", set_extra, "extras.use_cache"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"choice and preparation of the data; read as a stream", "data.* datasets* input_path output_path progress_path"},
    {"names, tokens and templates of the model",
     "model.tokenizer_name model.tokenizer_pad_token model.tokenizer_kwargs* model.processor_kwargs* "
     "model.trust_remote_code model.chat_template model.chat_template_kwargs* model.model_revision "
     "model.tool_call_parser"},
    {"how long, how often and how fast it trains",
     "training.output_dir training.max_steps training.num_train_epochs training.save_epoch training.save_steps "
     "training.save_final_model training.seed training.data_seed training.use_deterministic training.full_determinism "
     "training.run_name training.learning_rate training.lr_scheduler_type training.lr_scheduler_kwargs* "
     "training.warmup_ratio training.warmup_steps training.weight_decay training.adam_beta1 training.adam_beta2 "
     "training.adam_epsilon training.sgd_momentum training.eval_steps training.metrics_function "
     "training.reward_functions training.reward_function_kwargs* training.resume_from_checkpoint "
     "training.try_resume_from_last_checkpoint training.nccl_default_timeout_minutes training.label_ignore_index "
     "training.dataloader_main_process_only training.gkd.* training.gold.* training.verl_config_overrides*"},
    {"logging and reports",
     "training.log_level training.dep_log_level training.log_examples training.enable_wandb training.enable_mlflow "
     "training.enable_tensorboard training.logging_strategy training.logging_dir training.logging_steps "
     "training.logging_first_step training.include_performance_metrics training.include_alternative_mfu_metrics "
     "training.log_model_summary training.profiler.* training.telemetry.* deepspeed.steps_per_print "
     "deepspeed.wall_clock_breakdown"},
    {"start values, kind of task and saving of the adapter",
     "peft.lora_init_weights peft.lora_task_type peft.peft_save_mode"},
    {"a check, no allocation", "deepspeed.zero_allow_untested_optimizer"},
    {"sampling",
     "generation.temperature generation.top_p generation.min_p generation.seed generation.frequency_penalty "
     "generation.presence_penalty generation.stop_strings generation.stop_token_ids generation.logit_bias* "
     "generation.use_sampling generation.guided_decoding* generation.skip_special_tokens generation.tool_choice "
     "generation.parallel_tool_calls generation.exclude_prompt_from_response"},
    {"a server elsewhere", "remote_params* inference_remote_params*"},
    {"which tests are run, and reports", "tasks* enable_wandb run_name output_dir"},
};

constexpr Renamed kRenamed[] = {
    {"training.gradient_checkpointing", "training.enable_gradient_checkpointing",
     "Oumi has always put enable_ in front"},
    {"training.optim", "training.optimizer", "Oumi's name is optimizer"},
    {"model.torch_dtype", "model.torch_dtype_str", "Oumi's name ends in _str"},
    {"model.dtype", "model.torch_dtype_str", "Oumi's name is torch_dtype_str"},
    {"model.use_liger_kernel", "model.enable_liger_kernel", "Oumi's name is enable_liger_kernel"},
    {"model.max_length", "model.model_max_length", "Oumi's name is model_max_length"},
    {"training.bf16", "training.mixed_precision_dtype", "Oumi's name is mixed_precision_dtype: BF16"},
    {"fsdp.enable", "fsdp.enable_fsdp", "Oumi's name is enable_fsdp"},
};

void finish_deepspeed(Draft& draft) {
  if (!draft.fact_truth("oumi.deepspeed").value_or(false)) return;
  Job& job = draft.job;
  if (const Setting* stage = draft.fact("oumi.zero_stage"))
    if (const auto sharding = zero_stage(stage->text))
      draft.set(job.parallel.sharding, *sharding, "sharding", stage->origin);
  if (const Setting* precision = draft.fact("oumi.ds_precision"))
    if (const auto dtype = canonical_dtype(precision->text))
      draft.set(job.precision.autocast, *dtype, "autocast", precision->origin);
}

void finish_q_lora(Draft& draft) {
  if (!draft.fact_truth("oumi.q_lora").value_or(false)) return;
  Setting on = *draft.fact("oumi.q_lora");
  on.text = "true";
  draft.facts[draft.fact_number("oumi.q_lora_bits").value_or(4) == 8 ? "bnb.8bit" : "bnb.4bit"] = on;
  finish_bitsandbytes(draft);
}

void finish(Draft& draft) {
  if (draft.fact_truth("oumi.fsdp").value_or(false)) {
    draft.facts["fsdp.on"] = *draft.fact("oumi.fsdp");
    finish_fsdp(draft);
  }
  finish_deepspeed(draft);
  if (draft.fact_truth("oumi.use_peft").value_or(false)) {
    finish_lora(draft, {8, 8, 0});
    finish_q_lora(draft);
  }
  if (const Setting* method = draft.fact("oumi.quant_method"))
    draft.imply(draft.job.precision.quantization, lower(method->text), "quantization", method->origin);
  if (const Setting* length = draft.fact("oumi.data_sequence"))
    if (const auto tokens = whole_number(*length); tokens && *tokens > 0)
      draft.imply(draft.job.batch.sequence, *tokens, "sequence", length->origin);
}

constexpr Dialect kDialect = {System::oumi, "Oumi", kRules, kIrrelevant, kRenamed, {}, nullptr, finish};

}  // namespace

const Dialect& oumi_dialect() { return kDialect; }

}  // namespace headroom::doctor
