#include "doctor/config/handlers.h"

#include <algorithm>

#include "base/error.h"
#include "doctor/config/job_fields.h"

namespace headroom::doctor {
namespace {

std::string name_behind_dot(std::string_view field) { return std::string(field.substr(field.find('.') + 1)); }

bool means_all_linear(const std::string& word) { return word == "all-linear" || word == "all_linear" || word == "all"; }

template <typename T>
std::optional<T>& existing(std::optional<T>* field, const KeyRule& rule) {
  HR_CHECK(field != nullptr, "the rule of {} sets '{}', which is not a field of its type", rule.key, rule.field);
  return *field;
}

std::string_view set_number(Draft& draft, const Setting& setting, const KeyRule& rule, int64_t least) {
  const std::optional<int64_t> value = whole_number(setting);
  if (!value || *value < least) return "not a whole number in range";
  draft.set(whole_field_of(draft, rule), *value, std::string(rule.field), setting.origin);
  return {};
}

std::string_view set_flag(Draft& draft, const Setting& setting, const KeyRule& rule, bool inverted) {
  const std::optional<bool> value = truth(setting);
  if (!value) return "neither true nor false";
  draft.set(existing(truth_field(draft.job, rule.field), rule), *value != inverted, std::string(rule.field),
            setting.origin);
  return {};
}

// "q_proj,v_proj", ["q_proj", "v_proj"], "all-linear", "model.layers.*"
void set_targets(LoraSettings& lora, const Setting& setting) {
  std::vector<std::string> names = setting.items;
  if (!setting.is_list) names = split_words(setting.text, ",; ");
  for (const std::string& name : names)
    if (means_all_linear(name)) lora.all_linear = true;
  if (!lora.all_linear) lora.targets = std::move(names);
}

}  // namespace

std::optional<int64_t>& whole_field_of(Draft& draft, const KeyRule& rule) {
  return existing(whole_field(draft.job, rule.field), rule);
}

std::string_view set_whole(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_number(draft, setting, rule, 0);
}

std::string_view set_count(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_number(draft, setting, rule, 1);
}

std::string_view set_real(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<double> value = real_number(setting);
  if (!value || *value < 0) return "not a number in range";
  draft.set(existing(real_field(draft.job, rule.field), rule), *value, std::string(rule.field), setting.origin);
  return {};
}

std::string_view set_truth(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_flag(draft, setting, rule, false);
}

std::string_view set_opposite(Draft& draft, const Setting& setting, const KeyRule& rule) {
  return set_flag(draft, setting, rule, true);
}

std::string_view set_dtype(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<std::string> name = canonical_dtype(setting.text);
  if (!name) return "not a number type";
  if (*name != "auto")
    draft.set(existing(text_field(draft.job, rule.field), rule), *name, std::string(rule.field), setting.origin);
  return {};
}

std::string_view set_model(Draft& draft, const Setting& setting, const KeyRule& rule) {
  if (setting.is_list || setting.text.empty()) return "not the name of a model";
  draft.set(draft.job.model, setting.text, "model", setting.origin);
  return {};
}

std::string_view add_further_model(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.is_list || setting.text.empty()) return "not the name of a model";
  draft.job.further_models.push_back(setting.text);
  draft.job.keys.origins["further_models"] = setting.origin;
  return {};
}

std::string_view set_optimizer(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.is_list || setting.text.empty()) return "not the name of an optimizer";
  const std::string name = canonical_optimizer(setting.text);
  draft.set(draft.job.optimizer.name, name, "optimizer", setting.origin);
  if (name.ends_with("_layerwise")) draft.set_extra("layerwise_optimizer", "true", setting.origin);
  const bool fused = setting.text.find("fused") != std::string::npos || setting.text.find("Fused") != std::string::npos;
  if (fused) draft.set_extra("optimizer_fused", "true", setting.origin);
  return {};
}

std::string_view set_attention(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.compute.attention, canonical_attention(draft, setting), "attention", setting.origin);
  return {};
}

std::string_view set_zero_stage(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<Sharding> stage = zero_stage(setting.text);
  if (!stage) return "not a ZeRO stage from 0 to 3";
  draft.set(draft.job.parallel.sharding, *stage, "sharding", setting.origin);
  return {};
}

std::string_view set_offload_parameters(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<Offload> device = offload_device(setting.text);
  if (!device) return "not a device to offload to";
  draft.set(draft.job.parallel.offload_parameters, *device, "offload_parameters", setting.origin);
  return {};
}

std::string_view set_offload_optimizer(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<Offload> device = offload_device(setting.text);
  if (!device) return "not a device to offload to";
  draft.set(draft.job.parallel.offload_optimizer, *device, "offload_optimizer", setting.origin);
  return {};
}

std::string_view set_backward_prefetch(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<bool> on = backward_prefetch(draft, setting);
  if (!on) return "not a kind of prefetch";
  draft.set(draft.job.parallel.backward_prefetch, *on, "backward_prefetch", setting.origin);
  return {};
}

std::string_view set_objective(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.set(draft.job.objective, lower(setting.text), "objective", setting.origin);
  return {};
}

std::string_view set_gpus(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::string word = lower(setting.text);
  if (word == "auto" || word == "all" || word == "gpu" || word == "-1") return {};  // an unknown number
  std::optional<int64_t> count = whole_number(setting);
  if (!count && word.find(',') != std::string::npos) count = static_cast<int64_t>(split_words(word, ",").size());
  if (!count || *count < 1) return "not a number of devices";
  draft.set(draft.job.devices.gpus, *count, "gpus", setting.origin);
  return {};
}

std::string_view set_lora_rank(Draft& draft, const Setting& setting, const KeyRule&) {
  const std::optional<int64_t> rank = whole_number(setting);
  if (!rank || *rank < 1) return "not a whole number in range";
  draft.facts["lora.r"] = setting;
  return {};
}

std::string_view set_lora_alpha(Draft& draft, const Setting& setting, const KeyRule&) {
  if (!real_number(setting)) return "not a number";
  draft.facts["lora.alpha"] = setting;
  return {};
}

std::string_view set_lora_dropout(Draft& draft, const Setting& setting, const KeyRule&) {
  if (!real_number(setting)) return "not a number";
  draft.facts["lora.dropout"] = setting;
  return {};
}

std::string_view set_lora_targets(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["lora.targets"] = setting;
  return {};
}

std::string_view set_lora_saved(Draft& draft, const Setting& setting, const KeyRule&) {
  draft.facts["lora.saved"] = setting;
  return {};
}

std::string_view set_lora_dora(Draft& draft, const Setting& setting, const KeyRule&) {
  if (!truth(setting)) return "neither true nor false";
  draft.facts["lora.dora"] = setting;
  return {};
}

std::string_view set_buffer(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<int64_t> count = whole_number(setting);
  if (!count || *count < 0) return "not a whole number in range";
  draft.job.parallel.buffers[name_behind_dot(rule.field)] = *count;
  draft.job.keys.origins[std::string(rule.field)] = setting.origin;
  return {};
}

std::string_view set_architecture(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<int64_t> count = whole_number(setting);
  if (!count || *count < 0) return "not a whole number in range";
  draft.job.architecture[name_behind_dot(rule.field)] = *count;
  draft.job.keys.origins[std::string(rule.field)] = setting.origin;
  return {};
}

std::string_view set_extra(Draft& draft, const Setting& setting, const KeyRule& rule) {
  const std::optional<bool> on = setting.quoted || setting.is_list ? std::nullopt : truth(setting);
  const bool word = on && setting.text.find_first_of("0123456789") == std::string::npos && setting.text.size() > 1;
  std::string name = name_behind_dot(rule.field);
  // A rule for many keys tells them apart by the last part of the path.
  if (rule.key.ends_with('*')) name += "." + setting.path.substr(setting.path.rfind('.') + 1);
  draft.set_extra(name, word ? (*on ? "true" : "false") : setting.text, setting.origin);
  return {};
}

std::string_view remember(Draft& draft, const Setting& setting, const KeyRule& rule) {
  draft.facts[std::string(rule.field)] = setting;
  return {};
}

std::string_view refer(Draft& draft, const Setting& setting, const KeyRule&) {
  if (setting.is_list || setting.text.empty()) return "not the name of a file";
  draft.references.emplace_back(setting.origin, setting.text);
  return {};
}

void finish_lora(Draft& draft, const LoraDefaults& defaults) {
  LoraSettings& lora = draft.lora();
  lora.rank = draft.fact_number("lora.r").value_or(defaults.rank);
  const Setting* alpha = draft.fact("lora.alpha");
  lora.alpha = alpha ? real_number(*alpha).value_or(defaults.alpha) : defaults.alpha;
  const Setting* dropout = draft.fact("lora.dropout");
  lora.dropout = dropout ? real_number(*dropout).value_or(defaults.dropout) : defaults.dropout;
  if (const Setting* targets = draft.fact("lora.targets")) set_targets(lora, *targets);
  if (const Setting* saved = draft.fact("lora.saved"))
    lora.modules_to_save = saved->is_list ? saved->items : split_words(saved->text, ",; ");
  lora.dora = draft.fact_truth("lora.dora").value_or(false);
  for (const char* part : {"r", "alpha", "dropout", "targets", "saved", "dora"})
    if (const Setting* fact = draft.fact(std::string("lora.") + part))
      draft.job.keys.origins[std::string("lora.") + part] = fact->origin;
  if (const Setting* rank = draft.fact("lora.r")) draft.job.keys.origins["lora"] = rank->origin;
}

void finish_fsdp(Draft& draft) {
  if (!draft.fact("fsdp.on")) return;
  const Origin on = draft.fact("fsdp.on")->origin;
  Job& job = draft.job;
  if (const Setting* strategy = draft.fact("fsdp.strategy")) {
    if (const auto sharding = fsdp_sharding(strategy->text))
      draft.set(job.parallel.sharding, *sharding, "sharding", strategy->origin);
  } else if (const Setting* reshard = draft.fact("fsdp.reshard")) {
    draft.set(job.parallel.sharding, truth(*reshard).value_or(true) ? Sharding::zero3 : Sharding::zero2, "sharding",
              reshard->origin);
  } else {
    draft.imply(job.parallel.sharding, Sharding::zero3, "sharding", on);
  }
  if (const Setting* reshard = draft.fact("fsdp.reshard"))
    if (const auto value = truth(*reshard))
      draft.set(job.parallel.reshard_after_forward, *value, "reshard_after_forward", reshard->origin);
  if (const Setting* offload = draft.fact("fsdp.offload"))
    if (const auto device = offload_device(offload->text)) {
      draft.set(job.parallel.offload_parameters, *device, "offload_parameters", offload->origin);
      draft.set(job.parallel.offload_optimizer, *device, "offload_optimizer", offload->origin);
    }
  if (const Setting* checkpointing = draft.fact("fsdp.checkpointing"))
    if (truth(*checkpointing).value_or(false))
      draft.set(job.compute.checkpointing, true, "checkpointing", checkpointing->origin);
}

void finish_autocast(Draft& draft, const std::string& bf16, const std::string& fp16, const std::string& fp8) {
  const auto take = [&](const std::string& name, const char* dtype) {
    const Setting* setting = draft.fact(name);
    if (!setting || !truth(*setting).value_or(lower(setting->text) == "auto")) return false;
    draft.set(draft.job.precision.autocast, std::string(dtype), "autocast", setting->origin);
    return true;
  };
  if (take(fp8, "fp8") || take(bf16, "bfloat16") || take(fp16, "float16")) return;
  const Setting* stated = draft.fact(bf16) ? draft.fact(bf16) : draft.fact(fp16);
  if (stated) draft.imply(draft.job.precision.autocast, std::string("none"), "autocast", stated->origin);
}

void finish_bitsandbytes(Draft& draft) {
  const Setting* four = draft.fact("bnb.4bit");
  const Setting* eight = draft.fact("bnb.8bit");
  if (four && truth(*four).value_or(false)) {
    std::string kind = lower(draft.fact_text("bnb.type"));
    if (kind.empty()) kind = lower(draft.fact_text("bnb.default_type"));
    if (kind.empty()) kind = "fp4";  // BitsAndBytesConfig's default
    if (draft.fact_truth("bnb.nested").value_or(false)) kind += "-dq";
    draft.set(draft.job.precision.quantization, kind, "quantization", four->origin);
  } else if (eight && truth(*eight).value_or(false)) {
    draft.set(draft.job.precision.quantization, std::string("int8"), "quantization", eight->origin);
  }
  const auto extra = [&](const char* fact, const char* name) {
    const Setting* setting = draft.fact(fact);
    if (!setting) return;
    draft.set_extra(name, canonical_dtype(setting->text).value_or(setting->text), setting->origin);
  };
  extra("bnb.storage", "quantization_storage");
  extra("bnb.compute", "quantization_compute_dtype");
}

}  // namespace headroom::doctor
