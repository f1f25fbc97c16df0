#include "doctor/remedies/option_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "doctor/config/config_reader.h"
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

// The system whose options this one also takes.
std::optional<System> base_of(System system) {
  switch (system) {
    case System::trl:
    case System::axolotl:
    case System::llamafactory:
      return System::hf_trainer;
    case System::neox:
      return System::deepspeed;
    case System::pytorch_script:
    case System::unknown:
      return std::nullopt;
    case System::tgi:
    case System::sglang:
    case System::llama_server:
      return System::vllm;
    default:
      return System::pytorch_script;
  }
}

std::string filled(std::string_view text, const Values& values) {
  std::string out(text);
  for (const auto& [name, value] : values) {
    const std::string mark = "{" + std::string(name) + "}";
    for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at + value.size()))
      out.replace(at, mark.size(), value);
  }
  return out;
}

bool bare(const std::string& value) {
  if (value.starts_with("<")) return true;  // a placeholder: "<half>"
  if (value == "True" || value == "False" || value == "None") return true;
  if (value.starts_with("{") || value.starts_with("[") || value.starts_with("\"")) return true;
  if (value.find('(') != std::string::npos) return true;
  for (char c : value)
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.' && c != '-') return false;
  return !value.empty();
}

// Python's constants in a dictionary, written as in JSON.
std::string json_constants(std::string value) {
  for (const auto& [python, json] : {std::pair<std::string, std::string>{"False", "false"}, {"True", "true"}})
    for (size_t at = value.find(python); at != std::string::npos; at = value.find(python, at))
      value.replace(at, python.size(), json);
  return value;
}

std::string value_in(const std::string& value, Style style) {
  if (style == Style::python) return bare(value) ? value : "\"" + value + "\"";
  if (value.starts_with("{")) return style == Style::flags ? "'" + json_constants(value) + "'" : json_constants(value);
  if (value == "True" || value == "False") return style == Style::flags ? value : value == "True" ? "true" : "false";
  if (value == "None") return style == Style::json || style == Style::yaml ? "null" : value;
  if (style == Style::json) return bare(value) ? value : "\"" + value + "\"";
  if (style == Style::flags && value.find(' ') != std::string::npos) return "\"" + value + "\"";
  return value;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// "a=1; b=2"
Settings pairs_of(const std::string& keys) {
  Settings pairs;
  size_t begin = 0;
  while (begin < keys.size()) {
    size_t end = keys.find("; ", begin);
    if (end == std::string::npos) end = keys.size();
    const std::string pair = keys.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    HR_CHECK(equals != std::string::npos, "'{}' is not a key and value", pair);
    pairs.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    begin = end + 2;
  }
  return pairs;
}

// Parses "--a 1 --b"; empty when there are other words.
Settings flags_of(const std::string& text) {
  Settings pairs;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.starts_with("--"))
      pairs.emplace_back(word, "");
    else if (!pairs.empty() && pairs.back().second.empty())
      pairs.back().second = word;
    else
      return {};
    begin = end + 1;
  }
  return pairs;
}

// Turns "a.b=1; a.c=2" into "a": {"b": 1, "c": 2}. The values are already written.
std::string json_members(const Settings& settings) {
  std::string out;
  for (size_t i = 0; i < settings.size();) {
    const std::string& first = settings[i].first;
    const size_t dot = first.find('.');
    if (!out.empty()) out += ", ";
    if (dot == std::string::npos) {
      out += fmt::format("\"{}\": {}", first, settings[i++].second);
      continue;
    }
    const std::string parent = first.substr(0, dot + 1);
    Settings inner;
    for (; i < settings.size() && settings[i].first.starts_with(parent); ++i)
      inner.emplace_back(settings[i].first.substr(dot + 1), settings[i].second);
    out += fmt::format("\"{}\": {{{}}}", first.substr(0, dot), json_members(inner));
  }
  return out;
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// In a script, Oumi's sections are classes.
std::string oumi_class(const std::string& key) {
  const std::string section = key.substr(0, key.find('.'));
  if (section == "model") return "ModelParams";
  if (section == "peft") return "PeftParams";
  if (section == "fsdp") return "FSDPParams";
  if (section == "deepspeed") return "DeepSpeedParams";
  if (section == "data") return "DatasetSplitParams";
  return "TrainingParams";
}

std::string oumi_script(const Settings& settings) {
  std::string out, open;
  for (const auto& [key, value] : settings) {
    const std::string name = oumi_class(key);
    if (name == open)
      out += ", ";
    else
      out += fmt::format("{}{}(", open.empty() ? "" : "), ", name);
    open = name;
    // Enumerations are classes too.
    const std::string last = last_part(key);
    const bool member = last == "sharding_strategy" || last == "backward_prefetch" || last == "zero_stage";
    const std::string kind = last == "sharding_strategy"   ? "ShardingStrategy."
                             : last == "backward_prefetch" ? "BackwardPrefetch."
                                                           : "ZeRORuntimeStage.";
    out += fmt::format("{}={}", last, member ? kind + value : value_in(value, Style::python));
  }
  return out + ")";
}

// Writes the settings in the user's style.
std::string written(const Settings& settings, System system, Style style) {
  if (system == System::oumi && style == Style::python) return oumi_script(settings);
  std::string out;
  Settings members;
  for (const auto& [key, plain] : settings) {
    const std::string value = value_in(plain, style);
    if (style == Style::json) members.emplace_back(key, value);
    if (!out.empty()) out += style == Style::flags ? " " : ", ";
    if (style == Style::flags)
      out += system == System::torchtune ? key + "=" + value : fmt::format("--{} {}", key, value);
    if (style == Style::python) out += fmt::format("{}={}", key, value);
    if (style == Style::yaml) out += fmt::format("{}: {}", key, value);
  }
  return style == Style::json ? json_members(members) : out;
}

// Drops sections that command lines and script arguments do not have.
Settings without_sections(Settings settings, System system, Style style) {
  const bool sections =
      (system == System::accelerate && style == Style::flags) || (system == System::oumi && style == Style::python);
  for (auto& [key, value] : settings) {
    if (sections) key = last_part(key);
    if (style != Style::python && value.starts_with("{")) value = json_constants(value);
  }
  return settings;
}

// The style of systems that have only one, wherever their options were read.
std::optional<Style> only_style(System system) {
  switch (system) {
    case System::axolotl:
      return Style::yaml;
    case System::vllm:
    case System::sglang:
    case System::llama_server:
    case System::tgi:
      return Style::flags;
    default:
      return std::nullopt;
  }
}

std::optional<Style> style_at(const Origin& origin) {
  if (origin.file == "command line") return std::nullopt;  // doctor's own: tells nothing about the job's files
  const std::optional<SourceKind> kind = kind_of_name(origin.file);
  if (kind == SourceKind::python || kind == SourceKind::notebook) return Style::python;
  if (origin.key.starts_with("--") || origin.line == 0) return Style::flags;
  if (kind == SourceKind::yaml) return Style::yaml;
  if (kind == SourceKind::json) return Style::json;
  return std::nullopt;
}

// The style for a system without keys in scripts: DeepSpeed's dictionaries look like JSON, Accelerate's file is YAML.
Style possible(System system, Style style) {
  if (style != Style::python) return style;
  if (system == System::deepspeed || system == System::neox) return Style::json;
  return system == System::accelerate ? Style::yaml : style;
}

const OptionLine* find_line(std::string_view technique, System system) {
  for (const auto table : {batch_options, precision_options, optimizer_options, sharding_options, kernel_options,
                           adapter_options, allocator_options, serving_options, host_options, script_options})
    for (const OptionLine& line : table())
      if (line.technique == technique && line.system == system) return &line;
  return nullptr;
}

}  // namespace

bool builds_on(System system, System base) {
  for (std::optional<System> at = base_of(system); at; at = base_of(*at))
    if (*at == base) return true;
  return false;
}

std::vector<OptionLine> all_option_lines() {
  std::vector<OptionLine> all;
  for (const auto table : {batch_options, precision_options, optimizer_options, sharding_options, kernel_options,
                           adapter_options, allocator_options, serving_options, host_options, script_options})
    all.insert(all.end(), table().begin(), table().end());
  return all;
}

Style usual_style(System system) {
  switch (system) {
    case System::oumi:
    case System::axolotl:
    case System::llamafactory:
    case System::torchtune:
    case System::accelerate:
      return Style::yaml;
    case System::deepspeed:
    case System::neox:
      return Style::json;
    case System::litgpt:
    case System::vllm:
    case System::sglang:
    case System::llama_server:
    case System::tgi:
      return Style::flags;
    default:
      return Style::python;
  }
}

Style style_of(const Job& job) {
  if (const std::optional<Style> only = only_style(job.system)) return *only;
  size_t counts[4] = {};
  for (const auto& [field, origin] : job.keys.origins)
    if (const std::optional<Style> style = style_at(origin)) ++counts[static_cast<size_t>(*style)];
  const size_t most = static_cast<size_t>(std::max_element(counts, counts + 4) - counts);
  return possible(job.system, counts[most] > 0 ? static_cast<Style>(most) : usual_style(job.system));
}

Style style_of(const Job& job, const std::string& field) {
  const auto origin = job.keys.origins.find(field);
  if (origin == job.keys.origins.end() || only_style(job.system)) return style_of(job);
  const std::optional<Style> style = style_at(origin->second);
  return style ? possible(job.system, *style) : style_of(job);
}

Spelt spell(std::string_view technique, System system, Style style, const Values& values) {
  const OptionLine* line = nullptr;
  std::optional<System> at = system;
  while (at && !line) {
    line = find_line(technique, *at);
    at = base_of(*at);
  }
  for (const System last : {System::pytorch_script, System::vllm})
    if (!line) line = find_line(technique, last);
  HR_CHECK(line != nullptr, "technique '{}' is spelt nowhere", technique);
  const std::string text = filled(line->text, values);
  if (line->form == OptionLine::Form::missing) return {text, false, {}};
  if (style == Style::python && !line->python.empty()) return {filled(line->python, values), true, {}};
  // Keys of another system do not belong in this file, and code is not a setting.
  const bool own = line->system == system || base_of(system) == line->system;
  if (line->form == OptionLine::Form::text) return {text, true, own ? flags_of(text) : Settings()};
  const Style form = only_style(line->system).value_or(own ? style : usual_style(line->system));
  const Settings settings = without_sections(pairs_of(text), line->system, form);
  const bool script = line->system == System::oumi && form == Style::python;
  return {written(script ? pairs_of(text) : settings, line->system, form), true, own ? settings : Settings()};
}

}  // namespace headroom::doctor
