// Arguments that example scripts (run_clm.py, train.py of stanford_alpaca, ...) add to TrainingArguments, and arguments
// of from_pretrained.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_device_map(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set_extra("device_map", setting.text, setting.origin);
  return {};
}

std::string_view set_attention_flag(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<bool> on = truth(setting);
  if (!on) return "neither true nor false";
  if (*on)
    draft.set(draft.job.compute.attention, std::string("flash_attention_2"), std::string(rule.field), setting.origin);
  return {};
}

std::string_view set_pure_bf16(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (truth(setting).value_or(false))
    draft.set(draft.job.precision.weights, std::string("bfloat16"), std::string(rule.field), setting.origin);
  return {};
}

std::string_view set_xformers(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (truth(setting).value_or(false))
    draft.set(draft.job.compute.attention, std::string("xformers"), std::string(rule.field), setting.origin);
  return {};
}

// A number whose meaning depends on other options.
std::string_view remember_count(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (whole_number(setting).value_or(0) < 1) return "not a whole number in range";
  return remember(draft, setting, rule);
}

constexpr KeyRule kRules[] = {
    {"model_name_or_path", set_model, "model"},
    {"pretrained_model_name_or_path", set_model, "model"},
    {"model_name", set_model, "model"},
    {"model_id", set_model, "model"},
    {"base_model", set_model, "model"},
    {"dtype", set_dtype, "weight_dtype"},
    {"attn_implementation", set_attention, "attention"},
    {"use_flash_attention_2", set_attention_flag, "attention"},
    {"use_flash_attn", set_attention_flag, "attention"},
    {"device_map", set_device_map, "extras.device_map"},
    {"max_memory*", set_extra, "extras.max_memory"},
    {"num_labels", set_architecture, "architecture.labels"},
    {"low_cpu_mem_usage", set_extra, "extras.low_cpu_mem_usage"},
    {"offload_folder", set_extra, "extras.offload_folder"},
    {"use_cache", set_extra, "extras.use_cache"},
    {"block_size", set_count, "sequence"},
    {"max_length", set_count, "sequence"},
    {"max_seq_length", set_count, "sequence"},
    {"max_seq_len", set_count, "sequence"},
    {"model_max_length", set_count, "sequence"},
    {"max_source_length", set_count, "sequence"},
    {"max_target_length", set_extra, "extras.target_sequence"},
    {"val_max_target_length", set_extra, "extras.target_sequence"},
    {"tensor_parallel_size", set_count, "tensor_parallel"},
    {"tensor_model_parallel_size", set_count, "tensor_parallel"},
    {"tp_size", set_count, "tensor_parallel"},
    {"load_in_4bit", remember, "bnb.4bit"},
    {"load_in_8bit", remember, "bnb.8bit"},
    {"use_4bit_quantization", remember, "bnb.4bit"},
    {"use_8bit_quantization", remember, "bnb.8bit"},
    {"use_nested_quant", remember, "bnb.nested"},
    {"bnb_4bit_quant_type", remember, "bnb.type"},
    {"bnb_4bit_compute_dtype", remember, "bnb.compute"},
    {"bnb_4bit_quant_storage_dtype", remember, "bnb.storage"},
    {"train_batch_size", remember_count, "script.train_batch"},
    {"micro_train_batch_size", set_count, "micro_batch"},
    {"eval_batch_size", set_count, "eval_batch"},
    {"batch_size_training", set_count, "micro_batch"},  // llama-recipes, like the five below
    {"context_length", set_count, "sequence"},
    {"enable_fsdp", remember, "script.fsdp"},
    {"pure_bf16", set_pure_bf16, "weight_dtype"},
    {"use_fast_kernels", set_extra, "extras.fast_kernels"},
    {"low_cpu_fsdp", set_extra, "extras.cpu_ram_efficient_loading"},
    {"val_batch_size", set_count, "eval_batch"},
    {"micro_batch_size", set_count, "micro_batch"},  // alpaca-lora and its many copies, like the five below
    {"cutoff_len", set_count, "sequence"},
    {"lora_r", set_lora_rank, "lora"},
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_target_modules", set_lora_targets, "lora"},
    {"train_8bit", remember, "bnb.8bit"},
    {"num_dataloader_workers", set_whole, "dataloader_workers"},
    {"use_reentrant", set_extra, "extras.checkpointing_reentrant"},
    {"use_unsloth", set_extra, "extras.unsloth"},
    {"enable_xformers_memory_efficient_attention", set_xformers, "attention"},
    {"resolution", set_extra, "extras.image_size"},
};

constexpr Irrelevant kIrrelevant[] = {
    {"names, versions and places of the model's files",
     "config_name tokenizer_name tokenizer_name_or_path model_type model_revision revision use_fast_tokenizer token "
     "use_auth_token trust_remote_code cache_dir config_overrides subfolder variant use_safetensors local_files_only "
     "ignore_mismatched_sizes from_tf from_flax config task attn_bias"},
    {"choice and preparation of the data",
     "dataset_name dataset_config_name dataset_config train_file validation_file test_file data_path eval_data_path "
     "data_dir max_train_samples max_eval_samples max_predict_samples validation_split_percentage overwrite_cache "
     "preprocessing_num_workers keep_linebreaks streaming text_column summary_column source_prefix lang dataset_split "
     "dataset_text_field train_dataset eval_dataset pad_to_max_length ignore_pad_token_for_loss max_answer_length "
     "doc_stride mlm_probability line_by_line splits chat_template_format append_concat_token add_special_tokens"},
    {"how long, how often and how fast it trains",
     "max_train_steps lr_warmup_steps num_warmup_steps lr_scheduler checkpointing_steps validation_steps "
     "validation_prompt num_validation_images with_tracking"},
};

constexpr Renamed kRenamed[] = {
    {"torch_dtype", "dtype", "transformers 4.56; the old name still works"},
};

// In OpenRLHF, and where a micro-batch is also given, this counts all devices together; elsewhere it is the batch of
// one device.
void finish_train_batch(Draft& draft) {
  const Setting* batch = draft.fact("script.train_batch");
  if (!batch) return;
  const std::optional<int64_t> usual = draft.fact_number("script.openrlhf");
  const auto micro = draft.job.keys.origins.find("micro_batch");
  const bool whole =
      usual || (micro != draft.job.keys.origins.end() && table_key(micro->second.key) == "micro_train_batch_size");
  draft.set(whole ? draft.job.batch.global : draft.job.batch.micro, *whole_number(*batch),
            whole ? "global_batch" : "micro_batch", batch->origin);
  if (!draft.job.batch.micro) draft.job.batch.micro = usual;
}

// Scripts that a person wrote and that take a rank and its targets train adapters; TRL's want to be told so.
void finish_adapters(Draft& draft) {
  const bool of_trl = draft.fact("trl.peft") || draft.fact("trl.objective");
  if (draft.fact("lora.r") && draft.fact("lora.targets") && !of_trl && !draft.job.lora)
    finish_lora(draft, {8, 16, 0.05});
}

void finish_script(Draft& draft) {
  finish_bitsandbytes(draft);
  finish_train_batch(draft);
  finish_adapters(draft);
  const int64_t shards = draft.job.parallel.tensor.value_or(1);
  if (shards > 1 && shards < 1'000'000 && draft.job.keys.origins.count("tensor_parallel"))
    draft.imply(draft.job.devices.gpus, shards, "gpus", draft.job.keys.origins["tensor_parallel"]);
  if (draft.fact_truth("script.fsdp").value_or(false))
    draft.imply(draft.job.parallel.sharding, Sharding::zero3, "sharding", draft.fact("script.fsdp")->origin);
}

constexpr Dialect kDialect = {System::unknown, "script arguments", kRules, kIrrelevant, kRenamed, {},
                              nullptr,         finish_script};

}  // namespace

const Dialect& script_dialect() { return kDialect; }

}  // namespace headroom::doctor
