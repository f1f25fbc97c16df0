// peft.LoraConfig and its file adapter_config.json; transformers.BitsAndBytesConfig and a model's quantization_config.
#include "doctor/config/dialects.h"
#include "doctor/config/handlers.h"

namespace headroom::doctor {
namespace {

std::string_view set_quant_method(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word != "bitsandbytes") draft.set(draft.job.precision.quantization, word, "quantization", setting.origin);
  return {};
}

constexpr KeyRule kPeftRules[] = {
    {"r", set_lora_rank, "lora"},
    {"init_r", set_lora_rank, "lora"},  // AdaLoraConfig
    {"lora_alpha", set_lora_alpha, "lora"},
    {"lora_dropout", set_lora_dropout, "lora"},
    {"target_modules", set_lora_targets, "lora"},
    {"modules_to_save", set_lora_saved, "lora"},
    {"use_dora", set_lora_dora, "lora"},
    {"base_model_name_or_path", set_model, "model"},
    {"peft_type", set_extra, "extras.peft_type"},
    {"target_parameters", set_extra, "extras.lora_target_parameters"},
    {"exclude_modules", set_extra, "extras.lora_exclude"},
    {"layers_to_transform", set_extra, "extras.lora_layers"},
    {"rank_pattern*", set_extra, "extras.lora_rank_pattern"},
    {"trainable_token_indices*", set_extra, "extras.trainable_tokens"},
    {"layer_replication", set_extra, "extras.layer_replication"},
    {"bias", set_extra, "extras.lora_bias"},
    {"lora_bias", set_extra, "extras.lora_bias"},
    {"num_virtual_tokens", set_extra, "extras.virtual_tokens"},
};
constexpr Irrelevant kPeftIrrelevant[] = {
    {"scaling and start values of the adapter",
     "use_rslora init_lora_weights alpha_pattern* loftq_config* eva_config* corda_config* lora_ga_config* "
     "fan_in_fan_out alpha rank_dropout module_dropout init_weights use_effective_conv2d "
     "velora_config* monteclora_config* kasa_config* arrow_config*"},
    {"the schedule of AdaLoRA's ranks, below its start",
     "target_r tinit tfinal deltaT beta1 beta2 orth_reg_weight total_step"},
    {"names and versions",
     "task_type auto_mapping* revision inference_mode peft_version layers_pattern megatron_config* megatron_core "
     "use_qalora qalora_group_size alora_invocation_tokens runtime_config* use_bdlora ensure_weight_tying"},
};

void finish_peft(Draft& draft) {
  bool stated = false;
  for (const char* part : {"lora.r", "lora.targets", "lora.alpha"}) stated = stated || draft.fact(part);
  if (stated && draft.fact_text("lora.off").empty()) finish_lora(draft, {8, 8, 0});
}

constexpr KeyRule kBnbRules[] = {
    {"load_in_4bit", remember, "bnb.4bit"},
    {"load_in_8bit", remember, "bnb.8bit"},
    {"_load_in_4bit", remember, "bnb.4bit"},
    {"_load_in_8bit", remember, "bnb.8bit"},
    {"bnb_4bit_quant_type", remember, "bnb.type"},
    {"bnb_4bit_use_double_quant", remember, "bnb.nested"},
    {"bnb_4bit_quant_storage", remember, "bnb.storage"},
    {"bnb_4bit_compute_dtype", remember, "bnb.compute"},
    {"quant_method", set_quant_method, "quantization"},
    {"bits", set_extra, "extras.quantization_bits"},
    {"group_size", set_extra, "extras.quantization_group"},
    {"llm_int8_enable_fp32_cpu_offload", set_extra, "extras.int8_cpu_offload"},
    {"llm_int8_has_fp16_weight", set_extra, "extras.int8_keeps_fp16"},
    {"llm_int8_skip_modules", set_extra, "extras.quantization_skips"},
};
constexpr Irrelevant kBnbIrrelevant[] = {
    {"thresholds of the arithmetic", "llm_int8_threshold desc_act sym damp_percent version zero_point backend"},
};

constexpr Dialect kPeft = {System::hf_trainer, "PEFT", kPeftRules, kPeftIrrelevant, {}, {}, nullptr, finish_peft};
constexpr Dialect kBnb = {System::hf_trainer, "bitsandbytes", kBnbRules, kBnbIrrelevant, {}, {}, nullptr,
                          finish_bitsandbytes};

}  // namespace

const Dialect& peft_dialect() { return kPeft; }
const Dialect& bitsandbytes_dialect() { return kBnb; }

}  // namespace headroom::doctor
