// LLaMA-Factory: the arguments of llamafactory-cli (src/llamafactory/hparams), on top of TrainingArguments, and the
// newer v1 files (src/llamafactory/v1/config).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// auto, disabled, sdpa, fa2, fa3
std::string_view set_flash(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string word = lower(setting.text);
  if (word == "auto") return {};
  Setting named = setting;
  if (word == "disabled") named.text = "eager";
  return set_attention(draft, named, rule);
}

// For keys that switch off a default of LLaMA-Factory: false turns it on.
std::string_view set_no_checkpointing(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_opposite(draft, setting, rule);
}

template <int Kind>
std::string_view set_special_optimizer(Draft& draft, const Setting& setting, const KeyRule&) {
  constexpr const char* kNames[] = {"galore_adamw", "apollo_adamw", "badam", "muon", "adam_mini"};
  const std::optional<bool> on = truth(setting);
  if (!on) return "neither true nor false";
  if (*on) draft.facts["lf.optimizer"] = setting;
  if (*on) draft.facts["lf.optimizer"].text = kNames[Kind];
  return {};
}

std::string_view set_task(Draft& draft, const Setting& setting, const KeyRule& rule) {
  draft.facts["lf.inference"] = setting;
  return set_extra(draft, setting, rule);
}

// The prompt and the answer together make one sequence.
std::string_view add_to_sequence(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<int64_t> tokens = whole_number(setting);
  if (!tokens || *tokens < 1 || *tokens > (int64_t{1} << 30)) return "not a number of tokens";
  draft.job.batch.sequence = draft.job.batch.sequence.value_or(0) + *tokens;
  draft.job.keys.origins.emplace("sequence", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"model_name_or_path", set_model, "model"},
    {"stage", set_objective, "objective"},
    {"do_train", remember, "lf.train"},
    {"finetuning_type", remember, "lf.type"},
    {"cutoff_len", set_count, "sequence"},
    {"max_source_length", add_to_sequence, "sequence"},  // until the end of 2023: prompt and answer are cut separately
    {"max_target_length", add_to_sequence, "sequence"},
    {"packing", set_truth, "packing"},
    {"neat_packing", set_truth, "packing"},
    {"flash_attn", set_flash, "attention"},
    {"lora_rank", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"lora_target", set_lora_targets, "lora"},
    {"additional_target", set_lora_saved, "lora"},
    {"use_dora", set_lora_dora, "lora"},
    {"adapter_name_or_path", set_extra, "extras.adapter_model"},
    {"create_new_adapter", set_extra, "extras.new_adapter"},
    {"freeze_trainable_layers", set_extra, "extras.trainable_layers"},
    {"freeze_trainable_modules", set_extra, "extras.trainable_modules"},
    {"freeze_extra_modules", set_extra, "extras.trainable_extra"},
    {"freeze_vision_tower", set_extra, "extras.freeze_vision_tower"},
    {"freeze_multi_modal_projector", set_extra, "extras.freeze_projector"},
    {"freeze_language_model", set_extra, "extras.freeze_language_model"},
    {"quantization_bit", remember, "lf.bits"},
    {"quantization_method", remember, "lf.method"},
    {"quantization_type", remember, "bnb.type"},
    {"double_quantization", remember, "bnb.nested"},
    {"quantization_device_map", set_extra, "extras.device_map"},
    {"pure_bf16", remember, "lf.pure"},
    {"upcast_layernorm", set_extra, "extras.fp32_norms"},
    {"upcast_lmhead_output", set_truth, "flash_loss_upcast"},
    {"disable_gradient_checkpointing", set_no_checkpointing, "checkpointing"},
    {"use_unsloth_gc", set_truth, "activation_offload"},
    {"use_unsloth", set_extra, "extras.unsloth"},
    {"use_reentrant_gc", set_extra, "extras.checkpointing_reentrant"},
    {"enable_liger_kernel", set_extra, "extras.liger"},
    {"shift_attn", set_extra, "extras.shift_attention"},
    {"mixture_of_depths", set_extra, "extras.mixture_of_depths"},
    {"resize_vocab", set_extra, "extras.resize_vocab"},
    {"train_from_scratch", set_extra, "extras.from_scratch"},
    {"use_galore", set_special_optimizer<0>, "optimizer"},
    {"use_apollo", set_special_optimizer<1>, "optimizer"},
    {"use_badam", set_special_optimizer<2>, "optimizer"},
    {"use_muon", set_special_optimizer<3>, "optimizer"},
    {"use_adam_mini", set_special_optimizer<4>, "optimizer"},
    {"galore_rank", set_extra, "extras.optimizer_rank"},
    {"apollo_rank", set_extra, "extras.optimizer_rank"},
    {"galore_target", set_extra, "extras.optimizer_targets"},
    {"apollo_target", set_extra, "extras.optimizer_targets"},
    {"galore_layerwise", set_extra, "extras.layerwise_optimizer"},
    {"apollo_layerwise", set_extra, "extras.layerwise_optimizer"},
    {"badam_mode", set_extra, "extras.badam_mode"},
    {"badam_update_ratio", set_extra, "extras.badam_ratio"},
    {"use_llama_pro", set_extra, "extras.llama_pro"},
    {"ref_model", add_further_model, "further_models"},
    {"reward_model", add_further_model, "further_models"},
    {"ref_model_quantization_bit", set_extra, "extras.reference_bits"},
    {"reward_model_quantization_bit", set_extra, "extras.reward_bits"},
    {"ppo_buffer_size", set_extra, "extras.ppo_buffer"},
    {"ray_num_workers", set_count, "gpus"},
    {"val_size", set_extra, "extras.eval_share"},
    {"image_max_pixels", set_extra, "extras.image_pixels"},
    {"video_max_pixels", set_extra, "extras.video_pixels"},
    {"video_maxlen", set_extra, "extras.video_frames"},
    {"low_cpu_mem_usage", set_extra, "extras.low_cpu_mem_usage"},
    {"infer_backend", set_task, "extras.engine"},
    {"infer_dtype", set_dtype, "weight_dtype"},
    {"vllm_maxlen", set_count, "max_model_len"},
    {"vllm_gpu_util", set_real, "gpu_memory_utilization"},
    {"vllm_enforce_eager", set_truth, "eager"},
    {"vllm_max_lora_rank", set_extra, "extras.server_lora_rank"},
    {"sglang_maxlen", set_count, "max_model_len"},
    {"sglang_mem_fraction", set_real, "gpu_memory_utilization"},
    {"sglang_tp_size", set_extra, "extras.sglang_tp"},
    {"max_new_tokens", set_count, "max_new_tokens"},
    {"num_beams", set_extra, "extras.generation_num_beams"},
    {"use_mca", set_extra, "extras.megatron"},
    {"use_megatron_bridge", set_extra, "extras.megatron"},
    {"tensor_model_parallel_size", set_count, "tensor_parallel"},
    {"pipeline_model_parallel_size", set_count, "pipeline_parallel"},
    {"virtual_pipeline_model_parallel_size", set_extra, "extras.virtual_pipeline"},
    {"expert_model_parallel_size", set_count, "expert_parallel"},
    {"context_parallel_size", set_count, "context_parallel"},
    {"hyper_parallel_cp_size", set_count, "context_parallel"},
    {"sequence_parallel", set_extra, "extras.megatron_sequence_parallel"},
    {"use_distributed_optimizer", set_extra, "extras.distributed_optimizer"},
    {"recompute_granularity", set_extra, "extras.checkpointing_mode"},
    {"recompute_method", set_extra, "extras.checkpointing_method"},
    {"recompute_num_layers", set_extra, "extras.checkpoint_interval"},
    {"use_packed_sequences", set_truth, "packing"},
    {"oft_rank", set_extra, "extras.oft_rank"},
    {"oft_block_size", set_extra, "extras.oft_block"},
    {"oft_target", set_extra, "extras.oft_targets"},
    {"use_kt", set_extra, "extras.ktransformers"},
    {"kt_*", set_extra, "extras.ktransformers_options"},
    {"fp8_enable_fsdp_float8_all_gather", set_extra, "extras.fp8_all_gather"},
    {"fp8_backend", set_extra, "extras.fp8_backend"},
    {"compute_dtype", set_dtype, "autocast"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"choice and preparation of the data; read as a stream",
     "template dataset eval_dataset dataset_dir media_dir train_on_prompt mask_history streaming buffer_size "
     "mix_strategy "
     "interleave_probs overwrite_cache preprocessing_* max_samples eval_num_beams ignore_pad_token_for_loss "
     "eval_on_each_dataset tool_format default_system enable_thinking preserve_thinking tokenized_path "
     "data_shared_file_system image_min_pixels image_do_pan_and_scan crop_to_patches video_min_pixels video_fps "
     "use_audio_in_video audio_sampling_rate split_special_tokens add_tokens add_special_tokens "
     "new_special_tokens_config "
     "init_special_tokens"},
    {"names, paths and reports",
     "adapter_folder export_* hf_hub_token ms_hub_token om_hub_token print_param_status plot_loss compute_accuracy "
     "disable_shuffling early_stopping_steps include_effective_tokens_per_second swanlab_* use_swanlab ray_* "
     "master_addr "
     "master_port profiler_* enable_torch_profiler profile_modules offload_folder vllm_config* sglang_config* "
     "sglang_lora_backend use_v1_kernels"},
    {"weights of the loss and scaling of the adapter",
     "loraplus_* use_rslora pissa_* pref_* dpo_label_smoothing kto_* simpo_gamma ppo_epochs ppo_score_norm ppo_target "
     "ppo_whiten_rewards reward_model_type reward_model_adapters ref_model_adapters ld_alpha use_dft_loss "
     "use_asft_loss "
     "asft_alpha use_eaft_loss eaft_alpha moe_aux_loss_coef rope_scaling galore_* apollo_* badam_*"},
    {"how Megatron computes and overlaps, with the same tensors",
     "account_for_* apply_rope_fusion bias_activation_fusion masked_softmax_fusion cross_entropy_loss_fusion "
     "calculate_per_token_loss moe_grouped_gemm moe_token_dispatcher_type overlap_grad_reduce overlap_param_gather "
     "megatron_* use_hyper_parallel hyper_parallel_* extra_config* block_diag_attn module_dropout"},
    {"an evaluation of finished models", "n_shot task_dir save_dir download_mode"},
    {"sampling",
     "do_sample temperature top_p top_k repetition_penalty length_penalty skip_special_tokens use_kv_cache"},
};

constexpr Renamed kRenamed[] = {
    {"finetuning_args", "finetuning_type", "LLaMA-Factory's name is finetuning_type"},
    {"max_seq_length", "cutoff_len", "LLaMA-Factory's name is cutoff_len"},
    {"cutoff_length", "cutoff_len", "LLaMA-Factory's name is cutoff_len"},
    {"lora_r", "lora_rank", "LLaMA-Factory's name is lora_rank"},
    {"lora_target_modules", "lora_target", "LLaMA-Factory's name is lora_target"},
    {"use_unsloth_gradient_checkpointing", "use_unsloth_gc", "LLaMA-Factory's name is use_unsloth_gc"},
};

void finish(Draft& draft) {
  Job& job = draft.job;
  const std::string type = lower(draft.fact_text("lf.type"));
  const bool trains = draft.fact_truth("lf.train").value_or(job.batch.micro.has_value() || !job.objective.empty());
  if (!trains && (draft.fact("lf.inference") || draft.fact("lf.train") == nullptr)) job.task = Task::infer;
  if (trains && (type.empty() || type == "lora" || type == "oft")) {
    Setting all;
    all.text = "all";
    all.items = {"all"};
    draft.facts.emplace("lora.targets", all);
    const int64_t rank = draft.fact_number("lora.r").value_or(8);
    finish_lora(draft, {8, 2.0 * static_cast<double>(rank), 0});
    if (draft.fact("lf.type")) job.keys.origins["lora"] = draft.fact("lf.type")->origin;
  } else {
    job.lora.reset();
  }
  if (const Setting* method = draft.fact("lf.optimizer"))
    draft.set(job.optimizer.name, method->text, "optimizer", method->origin);
  if (draft.fact_truth("lf.pure").value_or(false)) {
    draft.set(job.precision.weights, std::string("bfloat16"), "weight_dtype", draft.fact("lf.pure")->origin);
    draft.set(job.precision.autocast, std::string("none"), "autocast", draft.fact("lf.pure")->origin);
  }
  if (const Setting* bits = draft.fact("lf.bits")) {
    const std::string method = lower(draft.fact_text("lf.method"));
    if (!method.empty() && method != "bnb" && method != "bitsandbytes") {
      draft.set(job.precision.quantization, method + bits->text, "quantization", bits->origin);
    } else {
      Setting on = *bits;
      on.text = "true";
      draft.facts[bits->text == "8" ? "bnb.8bit" : "bnb.4bit"] = on;
      Setting nf4 = *bits;
      nf4.text = "nf4";
      draft.facts["bnb.default_type"] = nf4;
      draft.facts.emplace("bnb.nested", on);
      finish_bitsandbytes(draft);
    }
  }
}

constexpr DialectOf kBases[] = {hf_trainer_dialect};
std::string rewrite(std::string_view path) { return fsdp_dialect().rewrite(path); }
constexpr Dialect kDialect = {
    System::llamafactory, "LLaMA-Factory", kRules, kIrrelevant, kRenamed, kBases, rewrite, finish};

// The newer v1 files.
std::string_view set_dist(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string word = lower(setting.text);
  if (word.starts_with("fsdp")) draft.facts["fsdp.on"] = setting;
  if (word == "ddp") draft.set(draft.job.parallel.sharding, Sharding::ddp, "sharding", setting.origin);
  return set_extra(draft, setting, rule);
}

constexpr KeyRule kV1Rules[] = {
    {"model", set_model, "model"},
    {"micro_batch_size", set_count, "micro_batch"},
    {"global_batch_size", set_count, "global_batch"},
    {"cutoff_len", set_count, "sequence"},
    {"flash_attn", set_flash, "attention"},
    {"bf16", remember, "lf1.bf16"},
    {"enable_activation_checkpointing", set_truth, "checkpointing"},
    {"batching_strategy", set_extra, "extras.batching"},
    {"max_grad_norm", set_real, "max_grad_norm"},
    {"batching_workers", set_whole, "dataloader_workers"},
    {"dist_config.name", set_dist, "extras.distributed_type"},
    {"dist_config.ep_size", set_count, "expert_parallel"},
    {"dist_config.offload_params", remember, "fsdp.offload"},
    {"dist_config.reshard_after_forward", remember, "fsdp.reshard"},
    {"dist_config.*", set_extra, "extras.dist_options"},
    {"dp_size", set_count, "gpus"},
    {"cp_size", set_count, "context_parallel"},
    {"mp_shard_size", set_buffer, "buffers.dp_shard"},
    {"mp_replicate_size", set_buffer, "buffers.dp_replicate"},
    {"optim_config.name", set_optimizer, "optimizer"},
    {"peft_config.name", remember, "lf1.peft"},
    {"peft_config.r", set_lora_rank, "lora"},
    {"peft_config.lora_alpha", set_lora_alpha, "lora"},
    {"peft_config.lora_dropout", set_lora_dropout, "lora"},
    {"peft_config.target_modules", set_lora_targets, "lora"},
    {"peft_config.adapter_name_or_path", set_extra, "extras.adapter_model"},
    {"peft_config.infer_dtype", set_dtype, "weight_dtype"},
    {"peft_config.export_dir", remember, "lf1.export"},
    {"quant_config.name", remember, "lf.method"},
    {"quant_config.quantization_bit", remember, "lf1.bits"},
    {"kernel_config.*", set_extra, "extras.kernels"},
    {"init_config.name", set_extra, "extras.init"},
    {"max_new_tokens", set_count, "max_new_tokens"},
    {"quant_config", set_extra, "extras.quant_config"},
};
constexpr Irrelevant kV1Irrelevant[] = {
    {"choice and preparation of the data; read as a stream", "train_dataset eval_dataset custom_chat_template"},
    {"names and paths",
     "output_dir model_class trust_remote_code resume_from_checkpoint peft_config.export_size sample_backend cp_mode "
     "dist_timeout"},
    {"how long, how often and how fast it trains",
     "learning_rate num_train_epochs max_steps seed full_determinism save_* logging_steps lr_scheduler_config* "
     "optim_config.* pref_* simpo_gamma dpo_label_smoothing ld_alpha"},
};

void finish_v1(Draft& draft) {
  Job& job = draft.job;
  finish_fsdp(draft);
  if (const Setting* half = draft.fact("lf1.bf16"))
    draft.set(job.precision.autocast, std::string(truth(*half).value_or(false) ? "bfloat16" : "none"), "autocast",
              half->origin);
  if (draft.fact("lf1.export")) job.task = Task::infer;
  if (lower(draft.fact_text("lf1.peft")) == "lora" && job.task == Task::train) {
    finish_lora(draft, {8, 16, 0});
    job.keys.origins["lora"] = draft.fact("lf1.peft")->origin;
  }
  if (const Setting* bits = draft.fact("lf1.bits"))
    draft.set(job.precision.quantization, std::string(bits->text == "8" ? "int8" : "nf4-dq"), "quantization",
              bits->origin);
}

constexpr Dialect kV1 = {System::llamafactory, "LLaMA-Factory v1", kV1Rules, kV1Irrelevant, {}, {}, nullptr, finish_v1};

}  // namespace

const Dialect& llamafactory_dialect() { return kDialect; }
const Dialect& llamafactory_v1_dialect() { return kV1; }

}  // namespace headroom::doctor
