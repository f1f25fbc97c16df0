#include "doctor/answer/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "doctor/config/patch.h"
#include "doctor/remedies/option_text.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

SourceKind kind_for(Style style) {
  switch (style) {
    case Style::python:
      return SourceKind::python;
    case Style::yaml:
      return SourceKind::yaml;
    case Style::json:
      return SourceKind::json;
    case Style::flags:
      return SourceKind::command;
  }
  return SourceKind::yaml;
}

std::string last_part(const std::string& key) {
  const size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

std::string without_dashes(const std::string& key) {
  return key.substr(std::min(key.size(), key.find_first_not_of('-')));
}

// An option's name with '_' and '-' made equal.
std::string plain(std::string key) {
  key = without_dashes(key);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

class Editor {
 public:
  explicit Editor(const ConfigReading& config) : config_(config) {
    for (const SourceRead& source : config.sources) texts_.emplace(source.name, source.text);
    for (const auto* notes : {&config.job.keys.understood, &config.job.keys.irrelevant, &config.job.keys.unreadable})
      for (const KeyNote& note : *notes) seen_.push_back(note.origin);
  }

  void set(const std::string& key, const std::string& value) {
    const SourceRead* source = nullptr;
    Edit edit;
    if (const Origin* origin = same_key(key)) {
      source = find_source(origin->file);
      edit.key = origin->key;
      edit.line = origin->line;
    }
    if (!source) {
      source = main_source();
      edit.key = new_key(*source, key);
      edit.line = 0;
    }
    edit.value = value_for(source->kind, value);
    texts_[source->name] = patch_config(source->name, source->kind, texts_[source->name], {edit}).text;
    changed_ = source;
  }

  Emitted finish() {
    Emitted result;
    const SourceRead* source = changed_ ? changed_ : main_source();
    result.name = source->name;
    result.text = texts_[source->name];
    for (const SourceRead& each : config_.sources)
      result.diff += unified_diff(fs::path(each.name).filename().string(), each.text, texts_[each.name]);
    return result;
  }

 private:
  const SourceRead* find_source(const std::string& name) const {
    for (const SourceRead& source : config_.sources)
      if (source.name == name || (name.empty() && source.kind == SourceKind::command)) return &source;
    return nullptr;
  }

  // Where the user's files already set this key.
  const Origin* same_key(const std::string& key) const {
    for (const Origin& origin : seen_) {
      const bool python = origin.key.find('.') != std::string::npos && find_source(origin.file) &&
                          find_source(origin.file)->kind == SourceKind::python;
      if (plain(origin.key) == plain(key) || (python && last_part(origin.key) == key)) return &origin;
    }
    return nullptr;
  }

  // The file with most of the job's keys, among those in the language in which the remedies are written.
  const SourceRead* main_source() const {
    const SourceKind wanted = kind_for(style_of(config_.job));
    std::map<std::string, int> count;
    for (const Origin& origin : seen_) ++count[origin.file];
    const SourceRead* best = nullptr;
    const auto rank = [&](const SourceRead& source) {
      return std::pair(source.kind == wanted, count.count(source.name) ? count.at(source.name) : 0);
    };
    for (const SourceRead& source : config_.sources)
      if (!best || rank(source) > rank(*best)) best = &source;
    HR_CHECK(best != nullptr, "a configuration without sources");
    return best;
  }

  std::string new_key(const SourceRead& source, const std::string& key) const {
    if (source.kind == SourceKind::command) return key.starts_with("--") ? key : "--" + key;
    if (source.kind != SourceKind::python) return key;
    // The call that has most of the job's arguments.
    std::map<std::string, int> calls;
    for (const Origin& origin : seen_) {
      const size_t dot = origin.key.rfind('.');
      if (origin.file == source.name && dot != std::string::npos) ++calls[origin.key.substr(0, dot)];
    }
    const auto most = std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
      const auto rank = [](const auto& entry) {
        const bool settings = entry.first.ends_with("Arguments") || entry.first.ends_with("Config");
        return std::pair(settings, entry.second);
      };
      return rank(a) < rank(b);
    });
    if (most == calls.end())
      throw Error(ErrorKind::usage, fmt::format("{}: no call takes '{}'", source.name, key), "set it by hand");
    return most->first + "." + key;
  }

  static std::string value_for(SourceKind kind, const std::string& value) {
    const bool data = kind == SourceKind::yaml || kind == SourceKind::json;
    if (data && (value == "True" || value == "False")) return value == "True" ? "true" : "false";
    if (data && value == "None") return "null";
    return value;
  }

  const ConfigReading& config_;
  std::map<std::string, std::string> texts_;
  std::vector<Origin> seen_;
  const SourceRead* changed_ = nullptr;
};

}  // namespace

Emitted emit_patch(const Diagnosis& diagnosis, const ConfigReading& config) {
  if (config.sources.empty())
    throw Error(ErrorKind::usage, "there is no configuration to patch", "give it with --config FILE, or after --");
  for (const SystemEvidence& evidence : config.evidence)
    if (evidence.dialect == "LLaMA-Factory v1")
      throw Error(ErrorKind::usage,
                  fmt::format("{} is a v1 file, whose keys differ from those named here", evidence.source),
                  "set the options by hand");
  Editor editor(config);
  std::vector<std::string> by_hand;
  for (const std::string& name : diagnosis.proposed_set())
    for (const Remedy& remedy : diagnosis.remedies) {
      if (remedy.name != name) continue;
      if (remedy.settings.empty()) by_hand.push_back(remedy.set);
      for (const auto& [key, value] : remedy.settings) editor.set(key, value);
    }
  Emitted result = editor.finish();
  result.by_hand = std::move(by_hand);
  return result;
}

std::string launch_command(const ConfigReading& config, const std::string& name, const std::string& text) {
  for (const SourceRead& source : config.sources)
    if (source.kind == SourceKind::command && source.name == config.sources.back().name && text.size() < 4096) {
      std::string line = text;
      while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
      if (line.find('\n') == std::string::npos) return line;
    }
  if (text.find("#SBATCH") != std::string::npos) return text;
  if (name.ends_with(".py")) return "python " + name;
  switch (config.job.system) {
    case System::axolotl:
      return "axolotl train " + name;
    case System::llamafactory:
      return "llamafactory-cli train " + name;
    case System::oumi:
      return "oumi train -c " + name;
    case System::litgpt:
      return fmt::format("litgpt {} --config {}", config.job.lora ? "finetune_lora" : "finetune_full", name);
    case System::torchtune:
      return fmt::format("tune run {} --config {}",
                         config.job.lora ? "lora_finetune_single_device" : "full_finetune_single_device", name);
    case System::neox:
      return "./deepy.py train.py " + name;
    case System::accelerate:
      return fmt::format("accelerate launch --config_file {} train.py", name);
    case System::deepspeed:
      return fmt::format("deepspeed train.py --deepspeed_config {}", name);
    default:
      return "python train.py " + name;
  }
}

}  // namespace headroom::doctor
