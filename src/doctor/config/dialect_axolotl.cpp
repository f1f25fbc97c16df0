// axolotl's YAML (names of src/axolotl/utils/schemas).
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

// true, false, "unsloth", "offload" (activations to the host), "offload_disk"
std::string_view set_checkpointing(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  const std::optional<bool> on = truth(setting);
  if (!on && !word.starts_with("offload") && word != "unsloth") return "not a kind of checkpointing";
  draft.set(draft.job.compute.checkpointing, on.value_or(true), "checkpointing", setting.origin);
  if (!on) draft.set(draft.job.compute.activation_offload, true, "activation_offload", setting.origin);
  return {};
}

std::string_view set_adapter(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["axolotl.adapter"] = setting;
  return {};
}

std::string_view set_reward(Draft& draft, const Setting& setting, const KeyRule&) {
  if (truth(setting).value_or(false))
    draft.set(draft.job.objective, std::string("reward"), "objective", setting.origin);
  return {};
}

// flash_attention: true and similar keys
template <int Kind>
std::string_view attention_flag(Draft& draft, const Setting& setting, const KeyRule&) {
  constexpr const char* kNames[] = {"flash_attention_2", "sdpa",           "xformers",
                                    "flex_attention",    "sage_attention", "eager"};
  const std::optional<bool> on = truth(setting);
  if (!on) return "neither true nor false";
  if (*on) draft.set(draft.job.compute.attention, std::string(kNames[Kind]), "attention", setting.origin);
  return {};
}

// deepspeed: a file of axolotl's repository, or the user's
std::string_view set_deepspeed(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return setting.text.empty() ? std::string_view() : refer(draft, setting, rule);
}

std::string_view set_fsdp_list(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.items.empty()) return {};
  draft.facts["axolotl.fsdp"] = setting;
  for (const std::string& item : setting.items)
    for (const std::string& word : split_words(item, " ,")) {
      Setting part = setting;
      part.text = word == "offload" ? "true" : word;
      if (fsdp_sharding(word)) draft.facts["fsdp.strategy"] = part;
      if (word == "offload") draft.facts["fsdp.offload"] = part;
    }
  return {};
}

// Plugins that replace the loss, so that the logits of the whole batch never exist in float32.
std::string_view set_plugins(Draft& draft, const Setting& setting, const KeyRule&) {
  for (const std::string& item : setting.items) {
    const std::string word = lower(item);
    if (word.find("cut_cross_entropy") != std::string::npos)
      draft.set(draft.job.compute.chunked_loss, true, "chunked_loss", setting.origin);
    if (word.find("liger") != std::string::npos) draft.set_extra("liger", "plugin", setting.origin);
    if (word.find("spectrum") != std::string::npos) draft.set_extra("freeze", "spectrum", setting.origin);
  }
  return {};
}

std::string_view set_liger_loss(Draft& draft, const Setting& setting, const KeyRule&) {
  if (truth(setting).value_or(false)) draft.set(draft.job.compute.chunked_loss, true, "chunked_loss", setting.origin);
  return {};
}

// true, false, "legacy", "disk": where saved activations are moved
std::string_view set_offloading(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::string word = lower(setting.text);
  Setting on = setting;
  if (word == "legacy" || word == "disk") on.text = "true";
  if (word == "disk") draft.set_extra("activation_offload_to", word, setting.origin);
  return set_truth(draft, on, rule);
}

// The length of a packed row, until axolotl 0.4.
std::string_view set_packed_length(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.correct(setting.origin, "sample_packing: axolotl 0.4 packs rows of sequence_len", setting.text);
  draft.imply(draft.job.batch.packing, true, "packing", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"base_model", set_model, "model"},
    {"micro_batch_size", set_count, "micro_batch"},
    {"gradient_accumulation_steps", set_count, "accumulation"},
    {"batch_size", set_count, "global_batch"},
    {"eval_batch_size", set_count, "eval_batch"},
    {"auto_find_batch_size", set_extra, "extras.auto_find_batch_size"},
    {"sequence_len", set_count, "sequence"},
    {"eval_sequence_len", set_extra, "extras.eval_sequence"},
    {"sample_packing", set_truth, "packing"},
    {"eval_sample_packing", set_extra, "extras.eval_packing"},
    {"pad_to_sequence_len", set_extra, "extras.pad_to_sequence"},
    {"batch_flattening", set_extra, "extras.padding_free"},
    {"multipack_real_batches", set_extra, "extras.multipack_real_batches"},
    {"group_by_length", set_extra, "extras.group_by_length"},
    {"optimizer", set_optimizer, "optimizer"},
    {"optim_args*", set_extra, "extras.optimizer_options"},
    {"optim_target_modules", set_extra, "extras.optimizer_targets"},
    {"qgalore_rank", set_extra, "extras.optimizer_rank"},
    {"dion_rank_fraction", set_extra, "extras.optimizer_rank_fraction"},
    {"bf16", remember, "axolotl.bf16"},
    {"fp16", remember, "axolotl.fp16"},
    {"fp8", remember, "axolotl.fp8"},
    {"bfloat16", remember, "axolotl.bfloat16"},
    {"float16", remember, "axolotl.float16"},
    {"float32", remember, "axolotl.float32"},
    {"fp8_enable_fsdp_float8_all_gather", set_extra, "extras.fp8_all_gather"},
    {"gradient_checkpointing", set_checkpointing, "checkpointing"},
    {"gradient_checkpointing_kwargs.use_reentrant", set_extra, "extras.checkpointing_reentrant"},
    {"gradient_checkpointing_kwargs*", set_extra, "extras.checkpointing_options"},
    {"selective_checkpointing*", set_extra, "extras.selective_checkpointing"},
    {"activation_offloading", set_offloading, "activation_offload"},
    {"layer_offloading", set_extra, "extras.layer_offloading"},
    {"attn_implementation", set_attention, "attention"},
    {"flash_attention", attention_flag<0>, "attention"},
    {"sdp_attention", attention_flag<1>, "attention"},
    {"xformers_attention", attention_flag<2>, "attention"},
    {"flex_attention", attention_flag<3>, "attention"},
    {"sage_attention", attention_flag<4>, "attention"},
    {"eager_attention", attention_flag<5>, "attention"},
    {"flash_attn_cross_entropy", set_extra, "extras.flash_cross_entropy"},
    {"flash_attn_fuse_mlp", set_extra, "extras.fused_mlp"},
    {"fused_attn_kernel", set_extra, "extras.fused_attention"},
    {"flex_attn_compile_kwargs*", set_extra, "extras.flex_compile"},
    {"torch_compile", set_truth, "compile"},
    {"torch_compile_backend", set_extra, "extras.compile_backend"},
    {"torch_compile_mode", set_extra, "extras.compile_mode"},
    {"adapter", set_adapter, "lora"},
    {"lora_r", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"lora_target_modules", set_lora_targets, "lora"},
    {"lora_target_linear", remember, "axolotl.linear"},
    {"lora_modules_to_save", set_lora_saved, "lora"},
    {"lora_target_parameters", set_extra, "extras.lora_target_parameters"},
    {"peft_use_dora", set_lora_dora, "lora"},
    {"peft_layers_to_transform", set_extra, "extras.lora_layers"},
    {"peft_trainable_token_indices", set_extra, "extras.trainable_tokens"},
    {"lora_model_dir", set_extra, "extras.adapter_model"},
    {"lora_mlp_kernel", set_extra, "extras.lora_kernels"},
    {"lora_qkv_kernel", set_extra, "extras.lora_kernels"},
    {"lora_o_kernel", set_extra, "extras.lora_kernels"},
    {"lora_embedding_kernel", set_extra, "extras.lora_kernels"},
    {"lora_on_cpu", set_extra, "extras.lora_on_cpu"},
    {"qlora_sharded_model_loading", set_extra, "extras.sharded_loading"},
    {"load_in_4bit", remember, "bnb.4bit"},
    {"load_in_8bit", remember, "bnb.8bit"},
    {"bnb_config_kwargs.bnb_4bit_quant_type", remember, "bnb.type"},
    {"bnb_config_kwargs.bnb_4bit_use_double_quant", remember, "bnb.nested"},
    {"bnb_config_kwargs.*", set_extra, "extras.bnb_options"},
    {"gptq", set_extra, "extras.gptq"},
    {"relora", set_extra, "extras.relora"},
    {"relora_cpu_offload", set_extra, "extras.relora_cpu_offload"},
    {"lisa_n_layers", set_extra, "extras.lisa_layers"},
    {"unfrozen_parameters", set_extra, "extras.unfrozen"},
    {"freeze_mm_modules", set_extra, "extras.freeze"},
    {"plugins", set_plugins, "extras.liger"},
    {"liger_fused_linear_cross_entropy", set_liger_loss, "chunked_loss"},
    {"liger_cross_entropy", set_extra, "extras.liger_cross_entropy"},
    {"liger_rope", set_extra, "extras.liger_rope"},
    {"liger_rms_norm", set_extra, "extras.liger_rms_norm"},
    {"liger_layer_norm", set_extra, "extras.liger_layer_norm"},
    {"liger_glu_activation", set_extra, "extras.liger_glu"},
    {"cut_cross_entropy", set_liger_loss, "chunked_loss"},
    {"chunked_cross_entropy", set_liger_loss, "chunked_loss"},
    {"chunked_cross_entropy_num_chunks", set_extra, "extras.loss_chunks"},
    {"tiled_mlp", set_extra, "extras.tiled_mlp"},
    {"tiled_mlp_num_shards", set_extra, "extras.tiled_mlp_shards"},
    {"deepspeed", set_deepspeed, "a file"},
    {"deepcompile", set_extra, "extras.deepcompile"},
    {"fsdp", set_fsdp_list, "sharding"},
    {"fsdp_config", set_extra, "extras.fsdp_config"},
    {"fsdp_version", set_extra, "extras.fsdp_version"},
    {"fsdp_final_state_dict_type", set_extra, "extras.state_dict_type"},
    {"sequence_parallel_degree", set_count, "context_parallel"},
    {"context_parallel_size", set_count, "context_parallel"},
    {"tensor_parallel_size", set_count, "tensor_parallel"},
    {"dp_shard_size", set_buffer, "buffers.dp_shard"},
    {"dp_replicate_size", set_buffer, "buffers.dp_replicate"},
    {"ddp_bucket_cap_mb", set_extra, "extras.ddp_bucket_mb"},
    {"ddp_find_unused_parameters", set_extra, "extras.find_unused_parameters"},
    {"max_grad_norm", set_real, "max_grad_norm"},
    {"dataloader_num_workers", set_whole, "dataloader_workers"},
    {"dataloader_pin_memory", set_truth, "pin_memory"},
    {"dataloader_prefetch_factor", set_extra, "extras.prefetch_factor"},
    {"torch_empty_cache_steps", set_extra, "extras.empty_cache_steps"},
    {"gc_steps", set_extra, "extras.empty_cache_steps"},
    {"max_memory*", set_extra, "extras.max_memory"},
    {"gpu_memory_limit", set_extra, "extras.gpu_memory_limit"},
    {"low_cpu_mem_usage", set_extra, "extras.low_cpu_mem_usage"},
    {"device_map", set_extra, "extras.device_map"},
    {"embeddings_skip_upcast", set_extra, "extras.embeddings_skip_upcast"},
    {"fp32_norms", set_extra, "extras.fp32_norms"},
    {"qat.weight_dtype", set_extra, "extras.qat"},
    {"qat.*", set_extra, "extras.qat_options"},
    {"quantization.weight_dtype", set_extra, "extras.post_quantization"},
    {"rl", set_objective, "objective"},
    {"reward_model", set_reward, "objective"},
    {"process_reward_model", set_reward, "objective"},
    {"num_labels", set_extra, "extras.labels"},
    {"precompute_ref_log_probs", set_extra, "extras.precompute_reference"},
    {"dpo_use_liger_kernel", set_liger_loss, "chunked_loss"},
    {"dpo_padding_free", set_extra, "extras.padding_free"},
    {"trl.num_generations", set_extra, "extras.generations"},
    {"trl.max_completion_length", set_count, "max_new_tokens"},
    {"trl.use_vllm", set_extra, "extras.vllm"},
    {"trl.vllm_mode", set_extra, "extras.vllm_mode"},
    {"trl.generation_batch_size", set_extra, "extras.generation_batch"},
    {"trl.sync_ref_model", set_extra, "extras.sync_reference"},
    {"trl.beta", set_extra, "extras.beta"},
    {"trl.use_liger_loss", set_liger_loss, "chunked_loss"},
    {"vllm.gpu_memory_utilization", set_real, "gpu_memory_utilization"},
    {"vllm.max_model_len", set_count, "max_model_len"},
    {"vllm.*", set_extra, "extras.vllm_options"},
    {"ray_num_workers", set_count, "gpus"},
    {"val_set_size", set_extra, "extras.eval_share"},
    {"eval_strategy", set_extra, "extras.eval_strategy"},
    {"save_only_model", set_extra, "extras.save_only_model"},
    {"resize_token_embeddings_to_32x", set_extra, "extras.vocab_to_32"},
    {"shrink_embeddings", set_extra, "extras.shrink_embeddings"},
    {"diffusion.*", set_extra, "extras.diffusion"},
    {"llmcompressor.*", set_extra, "extras.llmcompressor"},
    {"quantize_moe_experts", set_extra, "extras.quantize_moe_experts"},
    {"model_config.*", set_extra, "extras.model_overrides"},
    {"overrides_of_model_config*", set_extra, "extras.model_overrides"},
    {"neftune_noise_alpha", set_extra, "extras.neftune"},
    {"max_packed_sequence_len", set_packed_length, "packing"},
    {"expert_parallel_size", set_count, "expert_parallel"},
    {"experts_implementation", set_extra, "extras.experts_implementation"},
    {"liger_rms_norm_gated", set_extra, "extras.liger_rms_norm_gated"},
    {"flash_attn_rms_norm", set_extra, "extras.fused_norm"},
    {"flash_optimum", attention_flag<1>, "attention"},
    {"s2_attention", set_extra, "extras.shift_attention"},
    {"tiled_mlp_use_original_mlp", set_extra, "extras.tiled_mlp_original"},
    {"lora_rank_pattern*", set_extra, "extras.lora_rank_pattern"},
    {"peft_layer_replication", set_extra, "extras.layer_replication"},
    {"peft_autocast_adapter_dtype", set_extra, "extras.adapter_autocast"},
    {"overrides_of_model_kwargs*", set_extra, "extras.model_overrides"},
    {"use_onebitllms", set_extra, "extras.onebit"},
    {"gc_collect_steps", set_extra, "extras.gc_collect_steps"},
    {"ebft.n_samples_per_prompt", set_extra, "extras.generations"},
    {"ebft.generate_max_len", set_count, "max_new_tokens"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"choice and preparation of the data; read as a stream",
     "datasets* test_datasets* pretraining_dataset* dataset_* shuffle_* skip_prepare_dataset streaming* "
     "remove_unused_columns "
     "train_on_inputs chat_template* eot_tokens default_system_message special_tokens* tokens* added_tokens_overrides* "
     "num_dataset_shards_to_save min_sample_len max_prompt_len excess_length_strategy sample_packing_* "
     "curriculum_sampling "
     "push_to_hub* push_dataset_to_hub pretrain_multipack_* use_pose pose_* preprocess_iterable pretraining_sample_* "
     "is_preprocess total_* fix_untrained_tokens dataloader_drop_last pad_to_multiple_of system_prompt image_size "
     "image_resize_algorithm"},
    {"names, kinds and versions of the model's files",
     "model_type tokenizer_* processor_type processor_kwargs* base_model_config trust_remote_code hub_* output_dir "
     "strict "
     "base_model_ignore_patterns revision_of_model experimental_* is_falcon_derived_model is_llama_derived_model "
     "is_mistral_derived_model is_qwen_derived_model type_of_model cls_model_config "
     "hf_use_auth_token save_safetensors "
     "reinit_weights trainer_cls use_kernels model_quantization_config* axolotl_config_path mean_resizing_embeddings"},
    {"how long, how often and how fast it trains",
     "num_epochs max_steps learning_rate embedding_lr* lr_* cosine_* weight_decay adam_* warmup_* "
     "eval_steps evals_per_epoch save_* saves_per_epoch resume_from_checkpoint auto_resume_from_checkpoints seed "
     "early_stopping_patience load_best_model_at_end metric_for_best_model greater_is_better loss_watchdog_* "
     "jagged_restart_* relora_prune_ratio relora_prune_method relora_steps relora_warmup_steps lisa_step_interval "
     "lisa_layers_attribute loraplus_* peft_use_rslora "
     "peft_init_lora_weights peft.* lora_fan_in_fan_out kto_* rl_beta dpo_beta orpo_alpha simpo_gamma cpo_alpha "
     "dpo_label_smoothing dpo_loss_* dpo_use_weighting center_rewards_coefficient dion_* qgalore_* merge_* "
     "torchdistx_path use_eaft eaft_* ebft.* eta_min dynamic_checkpoint* loftq_config* lora_alpha_pattern* "
     "peft_ensure_weight_tying "
     "peft_layers_pattern"},
    {"logging and reports",
     "wandb_* use_wandb mlflow_* use_mlflow comet_* use_comet trackio_* use_trackio otel_* use_otel_metrics "
     "use_tensorboard logging_steps log_* include_tokens_per_second include_tkps profiler_* gradio_* eval_table_size "
     "eval_max_new_tokens eval_causal_lm_metrics do_causal_lm_eval do_bench_eval bench_* generate_samples "
     "num_generation_samples generation_* debug use_swanlab swanlab_* use_hf_mlflow hf_mlflow_*"},
    {"weights, sampling and reports of the reward", "trl.* rollout_*"},
    {"how processes find each other",
     "local_rank world_size ddp ddp_timeout ddp_broadcast_buffers device use_ray ray_run_name resources_per_worker* "
     "accelerator_config* heads_k_stride ring_attn_func"},
    {"arithmetic of float32 products, not their storage", "tf32"},
    {"kernels that compute the same tensors",
     "use_scattermoe use_sonicmoe llama4_linearized_experts gemma4_hybrid_attn_impl dsv4_* nvfp4_* sdpa_varlen "
     "flash_attn_d512 large_head_attention scaling_softmax* torch_compile_options* fp32_norm_classes"},
    {"of the files of the quantised model", "gptq_*"},
};

constexpr Renamed kRenamed[] = {
    {"evaluation_strategy", "eval_strategy", "axolotl 0.5"},
    {"per_device_train_batch_size", "micro_batch_size", "axolotl's name is micro_batch_size"},
    {"max_seq_length", "sequence_len", "axolotl's name is sequence_len"},
    {"max_length", "sequence_len", "axolotl's name is sequence_len"},
    {"optim", "optimizer", "axolotl's name is optimizer"},
    {"model_name_or_path", "base_model", "axolotl's name is base_model"},
    {"noisy_embedding_alpha", "neftune_noise_alpha", "axolotl 0.4"},
    {"liger_swiglu", "liger_glu_activation", "axolotl 0.5"},
    {"peft_use_lora", "adapter", "axolotl's name is adapter: lora"},
    {"sequence_parallel", "context_parallel_size", "axolotl 0.12"},
};

void finish_precision(Draft& draft) {
  finish_autocast(draft, "axolotl.bf16", "axolotl.fp16", "axolotl.fp8");
  const std::pair<const char*, const char*> kTrue[] = {{"axolotl.bfloat16", "bfloat16"},
                                                       {"axolotl.float16", "float16"}};
  for (const auto& [name, dtype] : kTrue)
    if (draft.fact_truth(name).value_or(false))
      draft.set(draft.job.precision.weights, std::string(dtype), "weight_dtype", draft.fact(name)->origin);
}

void finish(Draft& draft) {
  finish_precision(draft);
  const std::string adapter = lower(draft.fact_text("axolotl.adapter"));
  if (!adapter.empty()) {
    if (draft.fact_truth("axolotl.linear").value_or(false)) {
      Setting all = *draft.fact("axolotl.linear");
      all.text = "all-linear";
      all.items = {all.text};
      draft.facts.emplace("lora.targets", all);
    }
    finish_lora(draft, {8, 16, 0});
    draft.job.keys.origins["lora"] = draft.fact("axolotl.adapter")->origin;
  }
  // axolotl's defaults are nf4 and nested quantization (src/axolotl/loaders/model.py).
  Setting stated;
  stated.text = "nf4";
  draft.facts["bnb.default_type"] = stated;
  stated.text = "true";
  draft.facts.emplace("bnb.nested", stated);
  finish_bitsandbytes(draft);
  const bool fsdp = draft.fact("axolotl.fsdp") || draft.fact("fsdp.strategy") || draft.fact("fsdp.reshard");
  if (fsdp) {
    const char* witness = draft.fact("axolotl.fsdp")    ? "axolotl.fsdp"
                          : draft.fact("fsdp.strategy") ? "fsdp.strategy"
                                                        : "fsdp.reshard";
    draft.facts.emplace("fsdp.on", *draft.fact(witness));
    finish_fsdp(draft);
  }
}

constexpr DialectOf kBases[] = {fsdp_dialect};
std::string rewrite(std::string_view path) { return fsdp_dialect().rewrite(path); }
constexpr Dialect kDialect = {System::axolotl, "axolotl", kRules, kIrrelevant, kRenamed, kBases, rewrite, finish};

}  // namespace

const Dialect& axolotl_dialect() { return kDialect; }

}  // namespace headroom::doctor
