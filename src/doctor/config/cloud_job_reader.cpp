#include "doctor/config/cloud_job_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/command_reader.h"
#include "doctor/config/dialects.h"

namespace headroom::doctor {
namespace {

// Each script is read as a separate text. The lines before its first one: those up to `key: |`, or before `key:
// command`.
int64_t lines_before(const DocumentNode& script) {
  return script.quoted && script.end == 0 ? script.line : script.line - 1;
}

void shift_lines(Parts& parts, int64_t by) {
  for (Part& part : parts.parts)
    for (Setting& setting : part.settings) setting.origin.line += by;
  for (auto& [origin, path] : parts.references) origin.line += by;
  for (auto& [origin, variable] : parts.environment) origin.line += by;
  for (KeyNote& note : parts.irrelevant) note.origin.line += by;
}

void append(Parts& parts, Parts more) {
  for (Part& part : more.parts) parts.parts.push_back(std::move(part));
  for (auto& reference : more.references) parts.references.push_back(std::move(reference));
  for (auto& variable : more.environment) parts.environment.push_back(std::move(variable));
  for (KeyNote& note : more.irrelevant) parts.irrelevant.push_back(std::move(note));
  for (std::string& note : more.notes) parts.notes.push_back(std::move(note));
  parts.facts.merge(more.facts);
}

// Puts the job's variables as assignments before the script's first line.
std::string assignments(const DocumentNode& root) {
  std::string text;
  for (const char* section : {"envs", "env"}) {
    const DocumentNode* variables = root.find(section);
    if (!variables) continue;
    for (const DocumentEntry& entry : variables->entries)
      if (entry.value.text.find_first_of("'\n") == std::string::npos &&
          entry.key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
              std::string::npos)
        text += entry.key + "='" + entry.value.text + "'; ";
  }
  return text;
}

// A setup section may have #SBATCH lines (Oumi on Slurm).
std::string sbatch_lines(const std::string& script) {
  std::string text;
  for (size_t start = 0; start < script.size();) {
    const size_t end = std::min(script.find('\n', start), script.size());
    const std::string line = script.substr(start, end - start);
    text += (line.starts_with("#SBATCH") ? line : "") + "\n";
    start = end + 1;
  }
  return text.find('#') == std::string::npos ? std::string() : text;
}

// "A100:4", {A100: 4}, "A100-80GB": written like Slurm's gres per node.
std::optional<Setting> accelerators(const DocumentLeaf& leaf, const std::string& name) {
  constexpr std::string_view kSection = "resources.accelerators";
  if (!leaf.path.starts_with(kSection)) return std::nullopt;
  Setting setting = setting_of(leaf, name);
  std::string kind = setting.text, count = "1";
  if (leaf.path.size() > kSection.size() + 1) {
    kind = leaf.path.substr(kSection.size() + 1);
    if (!setting.is_null) count = setting.text;
  } else if (const size_t colon = kind.find(':'); colon != std::string::npos) {
    count = kind.substr(colon + 1);
    kind = kind.substr(0, colon);
  }
  if (setting.is_list || kind.empty() || lower(kind).starts_with("tpu")) return std::nullopt;
  setting.path = "gres";
  setting.text = "gpu:" + lower(kind) + ":" + count;
  setting.items = {setting.text};
  return setting;
}

}  // namespace

std::optional<Parts> read_cloud_job(const std::string& name, const DocumentNode& root) {
  const DocumentNode* run = root.find("run");
  const bool job = run && run->kind == DocumentNode::Kind::scalar &&
                   (root.find("resources") || root.find("setup") || root.find("num_nodes"));
  if (!job) return std::nullopt;
  Parts parts;
  Part hardware{&slurm_dialect(), Rank::launcher, {}, name, "resources of the job"};
  for (const DocumentLeaf& leaf : document_leaves(root)) {
    if (std::optional<Setting> gpus = accelerators(leaf, name)) {
      hardware.settings.push_back(std::move(*gpus));
    } else if (leaf.path == "num_nodes") {
      hardware.settings.push_back(setting_of(leaf, name));
      hardware.settings.back().path = "nodes";
    } else {
      const bool script = leaf.path == "run" || leaf.path == "setup";
      parts.irrelevant.push_back({setting_of(leaf, name).origin,
                                  script ? "holds commands, whose options are read one by one" : "the job around them",
                                  leaf.value->text.substr(0, 200)});
    }
  }
  if (!hardware.settings.empty()) parts.parts.push_back(std::move(hardware));
  if (const DocumentNode* setup = root.find("setup"))
    if (const std::string text = sbatch_lines(setup->text); !text.empty()) {
      Parts granted = read_command_text(name, text);
      shift_lines(granted, lines_before(*setup));
      append(parts, std::move(granted));
    }
  try {
    Parts commands = read_command_text(name, assignments(root) + run->text);
    shift_lines(commands, lines_before(*run));
    append(parts, std::move(commands));
  } catch (const Error& e) {
    throw Error(ErrorKind::format,
                fmt::format("{}:{}: the job's run section holds no command of a system that doctor reads", name,
                            std::max<int64_t>(1, run->line)),
                e.remedy());
  }
  return parts;
}

}  // namespace headroom::doctor
