// TRL: SFTConfig, DPOConfig, GRPOConfig, ..., ModelConfig and ScriptArguments, on top of TrainingArguments.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_loss(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  draft.set_extra("loss", word, setting.origin);
  if (word == "chunked_nll") draft.set(draft.job.compute.chunked_loss, true, "chunked_loss", setting.origin);
  return {};
}

constexpr KeyRule kRules[] = {
    {"max_length", set_count, "sequence"},
    {"packing", set_truth, "packing"},
    {"padding_free", set_extra, "extras.padding_free"},
    {"packing_strategy", set_extra, "extras.packing_strategy"},
    {"eval_packing", set_extra, "extras.eval_packing"},
    {"pad_to_multiple_of", set_extra, "extras.pad_to_multiple_of"},
    {"activation_offloading", set_truth, "activation_offload"},
    {"loss_type", set_loss, "extras.loss"},
    {"use_liger_loss", set_extra, "extras.liger_loss"},
    {"model_init_kwargs.dtype", set_dtype, "weight_dtype"},
    {"model_init_kwargs.torch_dtype", set_dtype, "weight_dtype"},
    {"model_init_kwargs.attn_implementation", set_attention, "attention"},
    {"model_init_kwargs.device_map", set_extra, "extras.device_map"},
    {"use_peft", remember, "trl.peft"},
    {"use_peft_lora", remember, "trl.peft"},
    {"lora_r", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"lora_target_modules", set_lora_targets, "lora"},
    {"lora_modules_to_save", set_lora_saved, "lora"},
    {"lora_target_parameters", set_extra, "extras.lora_target_parameters"},
    {"use_dora", set_lora_dora, "lora"},
    {"bnb_4bit_quant_type", remember, "bnb.type"},
    {"use_bnb_nested_quant", remember, "bnb.nested"},
    {"bnb_4bit_quant_storage", remember, "bnb.storage"},
    {"ref_model", add_further_model, "further_models"},
    {"reward_model_path", add_further_model, "further_models"},
    {"reward_model_name_or_path", add_further_model, "further_models"},
    {"teacher_model_name_or_path", add_further_model, "further_models"},
    {"precompute_ref_log_probs", set_extra, "extras.precompute_reference"},
    {"precompute_ref_batch_size", set_extra, "extras.precompute_reference_batch"},
    {"sync_ref_model", set_extra, "extras.sync_reference"},
    {"beta", set_extra, "extras.beta"},
    {"cast_lm_head_to_fp32", set_truth, "flash_loss_upcast"},
    {"num_generations", set_extra, "extras.generations"},
    {"num_generations_eval", set_extra, "extras.generations_eval"},
    {"generation_batch_size", set_extra, "extras.generation_batch"},
    {"steps_per_generation", set_extra, "extras.steps_per_generation"},
    {"max_completion_length", set_count, "max_new_tokens"},
    {"max_prompt_length", set_extra, "extras.prompt_length"},
    {"use_vllm", set_extra, "extras.vllm"},
    {"vllm_mode", set_extra, "extras.vllm_mode"},
    {"vllm_gpu_memory_utilization", set_real, "gpu_memory_utilization"},
    {"vllm_max_model_length", set_count, "max_model_len"},
    {"vllm_tensor_parallel_size", set_extra, "extras.vllm_tensor_parallel"},
    {"vllm_enable_sleep_mode", set_extra, "extras.vllm_sleep"},
    {"ds3_gather_for_generation", set_extra, "extras.gather_for_generation"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"choice and preparation of the data",
     "dataset_kwargs* dataset_num_proc dataset_train_split dataset_test_split dataset_streaming dataset_batch_size "
     "datasets* chat_template_path chat_template_kwargs* eos_token pad_token truncation_mode completion_only_loss "
     "assistant_only_loss shuffle_dataset streaming test_split_size ignore_bias_buffers label_pad_token_id "
     "formatting_func data_collator"},
    {"weights of the loss",
     "label_smoothing loss_weights ld_alpha f_divergence_type f_alpha_divergence_coef use_weighting discopop_tau "
     "desirable_weight undesirable_weight center_rewards_coefficient router_aux_loss_coef ref_model_mixup_alpha "
     "ref_model_sync_steps epsilon epsilon_high delta num_iterations reward_weights scale_rewards "
     "multi_objective_aggregation importance_sampling_level mask_truncated_completions top_entropy_quantile "
     "sapo_temperature_neg sapo_temperature_pos entropy_* use_adaptive_entropy vespo_* disable_dropout "
     "normalize_advantages reward_clip_range off_policy_mask_threshold use_bias_correction_kl"},
    {"sampling",
     "temperature top_p top_k min_p generation_kwargs* repetition_penalty cache_implementation "
     "use_transformers_* log_completions* log_multimodal num_completions_to_print log_unique_prompts "
     "max_tool_calling_iterations reward_funcs"},
    {"where vLLM runs",
     "vllm_server_* vllm_group_port vllm_model_impl vllm_structured_outputs_regex "
     "vllm_guided_decoding_regex vllm_importance_sampling_* vllm_reward*"},
    {"kind of task and scaling of the adapter", "lora_task_type use_rslora"},
};

constexpr Renamed kRenamed[] = {
    {"max_seq_length", "max_length", "TRL 0.16; the old name went in 0.20"},
};

void finish(Draft& draft) {
  const bool scripts_lora = draft.fact_truth("trl.peft").value_or(false);
  if (scripts_lora) finish_lora(draft, {16, 32, 0.05});
  if (draft.fact_text("bnb.type").empty() && draft.fact("trl.peft")) {
    // ModelConfig's default differs from BitsAndBytesConfig's.
    Setting kind;
    kind.text = "nf4";
    draft.facts["bnb.default_type"] = kind;
    finish_bitsandbytes(draft);
  }
}

constexpr DialectOf kBases[] = {hf_trainer_dialect};
std::string rewrite(std::string_view path) { return fsdp_dialect().rewrite(path); }
constexpr Dialect kDialect = {System::trl, "TRL", kRules, kIrrelevant, kRenamed, kBases, rewrite, finish};

}  // namespace

const Dialect& trl_dialect() { return kDialect; }

}  // namespace headroom::doctor
