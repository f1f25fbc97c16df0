// transformers.TrainingArguments (names of versions 3 to 5) and the model and data arguments of its example scripts.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// "full_shard auto_wrap offload", a list of these, or true with fsdp_config.
std::string_view set_fsdp(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<bool> on = truth(setting);
  if ((on && !*on) || setting.text.empty()) return {};
  draft.facts["fsdp.on"] = setting;
  for (const std::string& item : setting.items)
    for (const std::string& word : split_words(item, " ,")) {
      Setting part = setting;
      part.text = word;
      if (fsdp_sharding(word)) draft.facts["fsdp.strategy"] = part;
      part.text = "true";
      if (word == "offload") draft.facts["fsdp.offload"] = part;
    }
  return {};
}

std::string_view set_adafactor(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<bool> on = truth(setting);
  if (!on) return "neither true nor false";
  if (*on) draft.set(draft.job.optimizer.name, std::string("adafactor"), "optimizer", setting.origin);
  return {};
}

// "rank=128, update_proj_gap=200": the rank of GaLore and APOLLO determines the size of their states.
std::string_view set_optim_args(Draft& draft, const Setting& setting, const KeyRule&) {
  for (const std::string& item : setting.items)
    for (const std::string& word : split_words(item, ","))
      if (word.starts_with("rank=")) draft.set_extra("optimizer_rank", word.substr(5), setting.origin);
  return {};
}

std::string_view set_compile_detail(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.text.empty()) return {};
  draft.set(draft.job.compute.compile, true, "compile", setting.origin);  // each of these keys turns torch_compile on
  draft.set_extra("compile_mode", setting.text, setting.origin);
  return {};
}

std::string_view set_sampling(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.text == "group_by_length") draft.set_extra("group_by_length", "true", setting.origin);
  return {};
}

// The name of a file, or the DeepSpeed settings themselves (whose keys arrive one by one).
std::string_view set_deepspeed(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<bool> flag = truth(setting);
  if (flag) {
    if (*flag) draft.set_extra("distributed_type", "deepspeed", setting.origin);
    return {};
  }
  return refer(draft, setting, rule);
}

constexpr KeyRule kRules[] = {
    {"per_device_train_batch_size", set_count, "micro_batch"},
    {"gradient_accumulation_steps", set_count, "accumulation"},
    {"per_device_eval_batch_size", set_count, "eval_batch"},
    {"bf16", remember, "hf.bf16"},
    {"fp16", remember, "hf.fp16"},
    {"fp8", remember, "hf.fp8"},
    {"gradient_checkpointing", set_truth, "checkpointing"},
    {"gradient_checkpointing_kwargs.use_reentrant", set_extra, "extras.checkpointing_reentrant"},
    {"gradient_checkpointing_kwargs*", set_extra, "extras.checkpointing_options"},
    {"optim", set_optimizer, "optimizer"},
    {"adafactor", set_adafactor, "optimizer"},
    {"optim_args", set_optim_args, "extras.optimizer_rank"},
    {"optim_target_modules", set_extra, "extras.optimizer_targets"},
    {"max_grad_norm", set_real, "max_grad_norm"},
    {"dataloader_num_workers", set_whole, "dataloader_workers"},
    {"dataloader_pin_memory", set_truth, "pin_memory"},
    {"dataloader_prefetch_factor", set_extra, "extras.prefetch_factor"},
    {"dataloader_persistent_workers", set_extra, "extras.persistent_workers"},
    {"torch_compile", set_truth, "compile"},
    {"torch_compile_backend", set_compile_detail, "compile"},
    {"torch_compile_mode", set_compile_detail, "compile"},
    {"fsdp", set_fsdp, "sharding"},
    {"fsdp_config", refer, "a file"},
    {"deepspeed", set_deepspeed, "a file"},
    {"half_precision_backend", set_extra, "extras.half_precision_backend"},
    {"fp16_backend", set_extra, "extras.half_precision_backend"},
    {"fp16_opt_level", set_extra, "extras.fp16_opt_level"},
    {"use_liger_kernel", set_extra, "extras.liger"},
    {"liger_kernel_config*", set_extra, "extras.liger_config"},
    {"auto_find_batch_size", set_extra, "extras.auto_find_batch_size"},
    {"torch_empty_cache_steps", set_extra, "extras.empty_cache_steps"},
    {"eval_accumulation_steps", set_extra, "extras.eval_accumulation_steps"},
    {"prediction_loss_only", set_extra, "extras.prediction_loss_only"},
    {"batch_eval_metrics", set_extra, "extras.batch_eval_metrics"},
    {"include_for_metrics", set_extra, "extras.include_for_metrics"},
    {"fp16_full_eval", set_extra, "extras.full_eval_float16"},
    {"bf16_full_eval", set_extra, "extras.full_eval_bfloat16"},
    {"eval_strategy", set_extra, "extras.eval_strategy"},
    {"do_eval", set_extra, "extras.do_eval"},
    {"eval_use_gather_object", set_extra, "extras.eval_use_gather_object"},
    {"predict_with_generate", set_extra, "extras.predict_with_generate"},
    {"generation_max_length", set_extra, "extras.generation_max_length"},
    {"generation_num_beams", set_extra, "extras.generation_num_beams"},
    {"train_sampling_strategy", set_sampling, "extras.group_by_length"},
    {"ddp_bucket_cap_mb", set_extra, "extras.ddp_bucket_mb"},
    {"ddp_find_unused_parameters", set_extra, "extras.find_unused_parameters"},
    {"ddp_static_graph", set_extra, "extras.ddp_static_graph"},
    {"save_only_model", set_extra, "extras.save_only_model"},
    {"save_strategy", set_extra, "extras.save_strategy"},
    {"use_cpu", set_extra, "extras.use_cpu"},
    {"neftune_noise_alpha", set_extra, "extras.neftune"},
    {"tp_size", set_count, "tensor_parallel"},
    {"parallelism_config.*", set_extra, "extras.parallelism_config"},
    {"sharded_ddp", set_extra, "extras.sharded_ddp"},
    {"skip_memory_metrics", set_extra, "extras.skip_memory_metrics"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"names, paths and hosts",
     "output_dir run_name hub_* push_to_hub* logging_dir project trackio_* resume_from_checkpoint cache_dir "
     "use_mps_device local_rank local_process_index ddp_backend ddp_timeout ddp_broadcast_buffers xpu_backend "
     "_n_gpu past_index mp_parameters ray_scope tpu_num_cores tpu_metrics_debug jit_mode_eval use_ipex debug "
     "torchdynamo use_hpu_graphs enable_jit_checkpoint"},
    {"how long, how often and how fast it trains",
     "num_train_epochs max_steps learning_rate lr_scheduler_type lr_scheduler_kwargs* warmup_ratio warmup_steps "
     "weight_decay adam_beta1 adam_beta2 adam_epsilon label_smoothing_factor average_tokens_across_devices "
     "eval_steps eval_delay eval_on_start save_steps save_total_limit save_safetensors save_on_each_node "
     "save_final_model logging_* log_level* log_on_each_node load_best_model_at_end metric_for_best_model "
     "greater_is_better ignore_data_skip disable_tqdm report_to include_tokens_per_second "
     "include_num_input_tokens_seen "
     "restore_callback_states_from_checkpoint do_train do_predict overwrite_output_dir early_stopping_patience"},
    {"order and choice of the data",
     "seed data_seed full_determinism dataloader_drop_last remove_unused_columns label_names length_column_name "
     "accelerator_config* split_batches dispatch_batches use_legacy_prediction_loop"},
    {"arithmetic of float32 products, not their storage", "tf32"},
};

constexpr Renamed kRenamed[] = {
    {"per_gpu_train_batch_size", "per_device_train_batch_size", "transformers 3.0; the old name went in 5"},
    {"per_gpu_eval_batch_size", "per_device_eval_batch_size", "transformers 3.0; the old name went in 5"},
    {"evaluation_strategy", "eval_strategy", "transformers 4.41; the old name went in 4.46"},
    {"no_cuda", "use_cpu", "transformers 4.34; the old name went in 5"},
    {"group_by_length", "train_sampling_strategy", "transformers 5: train_sampling_strategy: group_by_length"},
    {"include_inputs_for_metrics", "include_for_metrics", "transformers 4.46"},
    {"fsdp_min_num_params", "fsdp_config.min_num_params", "transformers 4.28: inside fsdp_config"},
    {"fsdp_transformer_layer_cls_to_wrap", "fsdp_config.transformer_layer_cls_to_wrap",
     "transformers 4.28: inside fsdp_config"},
    {"use_liger", "use_liger_kernel", "transformers 4.45 (TRL's use_liger went in 0.18)"},
    {"optimizer", "optim", "the name in TrainingArguments is optim"},
    {"batch_size", "per_device_train_batch_size", "the name in TrainingArguments is per_device_train_batch_size"},
    {"micro_batch_size", "per_device_train_batch_size",
     "the name in TrainingArguments is per_device_train_batch_size; micro_batch_size is LitGPT's and axolotl's"},
};

void finish(Draft& draft) { finish_autocast(draft, "hf.bf16", "hf.fp16", "hf.fp8"); }

constexpr DialectOf kBases[] = {fsdp_dialect, script_dialect};

std::string rewrite(std::string_view path) { return fsdp_dialect().rewrite(path); }

constexpr Dialect kDialect = {System::hf_trainer, "transformers", kRules,  kIrrelevant,
                              kRenamed,           kBases,         rewrite, finish};

}  // namespace

const Dialect& hf_trainer_dialect() { return kDialect; }

}  // namespace headroom::doctor
