#include "doctor/remedies/option_text.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "doctor/remedies/option_tables.h"

namespace headroom::doctor {
namespace {

// The system whose options another also takes.
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
  if (value == "True" || value == "False" || value == "None") return true;
  if (value.starts_with("{") || value.starts_with("[") || value.starts_with("\"")) return true;
  if (value.find('(') != std::string::npos) return true;
  for (char c : value)
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.' && c != '-') return false;
  return !value.empty();
}

std::string value_in(const std::string& value, Style style) {
  if (style == Style::python) return bare(value) ? value : "\"" + value + "\"";
  if (value == "True" || value == "False") return style == Style::flags ? value : value == "True" ? "true" : "false";
  if (value == "None") return style == Style::json || style == Style::yaml ? "null" : value;
  if (style == Style::json) return bare(value) ? value : "\"" + value + "\"";
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
    HR_CHECK(equals != std::string::npos, "'{}' is no key and value", pair);
    pairs.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    begin = end + 2;
  }
  return pairs;
}

// "--a 1 --b": nothing where other words stand between.
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

// "a.b=1; a.c=2" is "a": {"b": 1, "c": 2}; values are written already.
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

// In the user's form.
std::string written(const Settings& settings, Style style) {
  std::string out;
  Settings members;
  for (const auto& [key, plain] : settings) {
    const std::string value = value_in(plain, style);
    if (style == Style::json) members.emplace_back(key, value);
    if (!out.empty()) out += style == Style::flags ? " " : ", ";
    if (style == Style::flags) out += fmt::format("--{} {}", key, value);
    if (style == Style::python) out += fmt::format("{}={}", key, value);
    if (style == Style::yaml) out += fmt::format("{}: {}", key, value);
  }
  return style == Style::json ? json_members(members) : out;
}

const OptionLine* find_line(std::string_view technique, System system) {
  for (const auto table : {batch_options, precision_options, optimizer_options, sharding_options, kernel_options,
                           adapter_options, allocator_options, serving_options, host_options})
    for (const OptionLine& line : table())
      if (line.technique == technique && line.system == system) return &line;
  return nullptr;
}

}  // namespace

std::vector<OptionLine> all_option_lines() {
  std::vector<OptionLine> all;
  for (const auto table : {batch_options, precision_options, optimizer_options, sharding_options, kernel_options,
                           adapter_options, allocator_options, serving_options, host_options})
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
  for (const auto& [field, origin] : job.origins) {
    const std::string& file = origin.file;
    if (file.ends_with(".py") || file.ends_with(".ipynb")) return Style::python;
    if (origin.key.starts_with("--") || origin.line == 0) return Style::flags;
    if (file.ends_with(".yaml") || file.ends_with(".yml")) return Style::yaml;
    if (file.ends_with(".json")) return Style::json;
  }
  return usual_style(job.system);
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
  // A key of another system is no key of this file: code is written as code.
  const bool own = line->system == system || base_of(system) == line->system;
  if (line->form == OptionLine::Form::keys) {
    const Settings settings = pairs_of(text);
    return {written(settings, own ? style : usual_style(line->system)), true, own ? settings : Settings()};
  }
  return {text, line->form == OptionLine::Form::text, flags_of(text)};
}

}  // namespace headroom::doctor
