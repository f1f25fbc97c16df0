#include "doctor/config/spelling.h"

#include <fmt/format.h>

#include "doctor/config/spelling_words.h"

namespace headroom::doctor {
namespace {

// The system whose keys this one also takes.
System base_of(System system) {
  switch (system) {
    case System::trl:
    case System::llamafactory:
    case System::axolotl:
    case System::pytorch_script:
      return System::hf_trainer;
    default:
      return System::unknown;
  }
}

// Axolotl has its own names for some values and uses those of transformers for the others.
std::string word_of(System system, const std::string& field, const std::string& value) {
  for (System at = system; at != System::unknown; at = base_of(at))
    for (const ValueWord& word : value_words())
      if (word.system == at && word.field == field && word.value == value) return std::string(word.word);
  return value;
}

std::string key_of(System system, const std::string& field) {
  for (System at = system; at != System::unknown; at = base_of(at))
    for (const MainKey& key : main_keys())
      if (key.system == at && key.field == field) return std::string(key.key);
  return {};
}

// The system that the key belongs to: a part of the job may be a file of DeepSpeed or Accelerate.
System system_of_key(const Job& job, const std::string& key) {
  if (key.starts_with("zero_optimization") || key == "train_micro_batch_size_per_gpu") return System::deepspeed;
  if (key.find("fsdp_config") != std::string::npos || key == "mixed_precision" || key.starts_with("--fsdp_"))
    return System::accelerate;
  return job.system;
}

bool is_flag(const std::string& value) { return value == "true" || value == "false"; }

std::string text_of(const Edit& edit, SourceKind style) {
  const std::string last = edit.key.substr(edit.key.rfind('.') + 1);
  switch (style) {
    case SourceKind::yaml:
      return edit.key + ": " + edit.value;
    case SourceKind::json:
      return fmt::format("\"{}\": {}", edit.key, edit.value);
    case SourceKind::python:
    case SourceKind::notebook:
      return fmt::format("{}={}", last, is_flag(edit.value) ? (edit.value == "true" ? "True" : "False") : edit.value);
    case SourceKind::command:
      break;
  }
  if (edit.remove) return "without " + edit.key;
  if (!edit.key.starts_with("-")) return edit.key + "=" + edit.value;
  return edit.value.empty() ? edit.key : edit.key + " " + edit.value;
}

std::string python_call(System system, const std::string& key) {
  if (system == System::trl) return "SFTConfig." + key;
  if (system == System::oumi) {
    const std::string section = key.substr(0, key.find('.'));
    const std::string name = key.substr(key.rfind('.') + 1);
    if (section == "model") return "ModelParams." + name;
    if (section == "fsdp") return "FSDPParams." + name;
    if (section == "peft") return "PeftParams." + name;
    return "TrainingParams." + name;
  }
  return (key == "dtype" || key == "attn_implementation" ? "from_pretrained." : "TrainingArguments.") + key;
}

// Keys that set several things at once: they cannot set one field alone.
bool is_composite(const std::string& key, const std::string& field) {
  const std::string last = key.substr(key.find_last_of(".-") + 1);
  if (last == "_component_") return field != "optimizer" && field != "model";
  return last == "fsdp" || last == "distributed_type" || last == "adapter" || last == "plugins" || last == "_conf" ||
         last == "finetuning_type" || last == "use_peft";
}

// transformers has one key per type of mixed precision.
std::optional<std::string> autocast_key(const Job& job, const std::string& value) {
  if (value != "bfloat16" && value != "float16") return std::nullopt;
  const std::string key = value == "bfloat16" ? "bf16" : "fp16";
  const auto origin = job.keys.origins.find("autocast");
  if (origin != job.keys.origins.end() && job.precision.autocast.value_or("none") != "none" &&
      !origin->second.key.ends_with(key))
    return std::nullopt;  // the other key would have to be removed first
  return key;
}

bool serves(System system) {
  return system == System::vllm || system == System::sglang || system == System::llama_server || system == System::tgi;
}

}  // namespace

std::optional<Spelling> spelling_of(const Job& job, const std::string& field, const std::string& value,
                                    SourceKind style) {
  Spelling spelling;
  if (field == "autocast" && (job.system == System::hf_trainer || base_of(job.system) == System::hf_trainer)) {
    const std::optional<std::string> key = autocast_key(job, value);
    if (!key) return std::nullopt;
    spelling.edit = {style == SourceKind::command  ? "--" + *key
                     : style == SourceKind::python ? python_call(job.system, *key)
                                                   : *key,
                     "true"};
    spelling.text = text_of(spelling.edit, style);
    return spelling;
  }
  const auto origin = job.keys.origins.find(field);
  const bool stated =
      origin != job.keys.origins.end() && origin->second.line > 0 && !origin->second.key.ends_with("()");
  if (stated) {
    if (is_composite(origin->second.key, field)) return std::nullopt;
    spelling.file = origin->second.file;
    spelling.edit.key = origin->second.key;
    spelling.edit.line = origin->second.line;
  } else {
    const std::string key = key_of(job.system, field);
    if (key.empty()) return std::nullopt;
    const bool options = job.system == System::torchtune || job.system == System::llamafactory;
    spelling.edit.key = style == SourceKind::command && !options ? "--" + key
                        : style == SourceKind::python            ? python_call(job.system, key)
                                                                 : key;
  }
  const std::string& key = spelling.edit.key;
  spelling.edit.value = word_of(system_of_key(job, key), field, value);
  // Flags of servers take no value.
  if (key.starts_with("-") && serves(job.system) && is_flag(value)) {
    spelling.edit.remove = value == "false";
    spelling.edit.value.clear();
  }
  spelling.text = text_of(spelling.edit, style);
  return spelling;
}

}  // namespace headroom::doctor
