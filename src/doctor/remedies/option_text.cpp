#include "doctor/remedies/option_text.h"

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

// "a=1; b=2" in the user's form.
std::string written(const std::string& keys, Style style) {
  std::string out;
  size_t begin = 0;
  while (begin < keys.size()) {
    size_t end = keys.find("; ", begin);
    if (end == std::string::npos) end = keys.size();
    const std::string pair = keys.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    HR_CHECK(equals != std::string::npos, "'{}' is no key and value", pair);
    const std::string key = pair.substr(0, equals), value = value_in(pair.substr(equals + 1), style);
    if (!out.empty()) out += style == Style::flags ? " " : ", ";
    if (style == Style::flags) out += fmt::format("--{} {}", key, value);
    if (style == Style::python) out += fmt::format("{}={}", key, value);
    if (style == Style::yaml) out += fmt::format("{}: {}", key, value);
    if (style == Style::json) out += fmt::format("\"{}\": {}", key, value);
    begin = end + 2;
  }
  return out;
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
  if (line->form == OptionLine::Form::keys) return {written(text, own ? style : usual_style(line->system)), true};
  return {text, line->form == OptionLine::Form::text};
}

}  // namespace headroom::doctor
