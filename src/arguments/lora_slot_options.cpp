#include "arguments/lora_slot_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "arguments/option.h"
#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

[[noreturn]] void refuse(const std::string& module, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("--lora-modules {} {}", module, why),
              "give NAME=DIR, or {\"name\": NAME, \"path\": DIR}");
}

NamedAdapter parse_module(const std::string& module) {
  if (!module.starts_with("{")) {
    const size_t equals = module.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == module.size()) refuse(module, "names no adapter");
    return {module.substr(0, equals), module.substr(equals + 1)};
  }
  const Json json = Json::parse(module, nullptr, false);
  const auto text = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  if (text("name").empty() || text("path").empty()) refuse(module, "has no name, or no path");
  return {text("name"), text("path")};
}

}  // namespace

void add_lora_slot_options(CLI::App& app, LoraSlotOptions& options, std::vector<std::string>& modules) {
  constexpr const char* kGroup = "Adapters of requests";
  app.add_option("--lora-modules", modules, "LoRA adapters that requests name as their model: NAME=DIR ...")
      ->group(kGroup);
  app.add_flag("--enable-lora", options.enabled, "plan slots for adapters that are loaded later")->group(kGroup);
  scalar(app, "--max-loras", options.max_loras, "slots: adapters that are held at once (those of --lora-modules, or 1)")
      ->group(kGroup);
  scalar(app, "--max-lora-rank", options.max_rank, "the largest rank of an adapter (that of --lora-modules, or 16)")
      ->group(kGroup);
  if (app.get_option_no_throw("--lora-target-modules")) return;
  app.add_option("--lora-target-modules", options.targets,
                 "modules that have slots: q_proj v_proj ... (those of --lora-modules, or all-linear)")
      ->group(kGroup);
}

std::vector<NamedAdapter> parse_lora_modules(const std::vector<std::string>& modules) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& module : modules) {
    NamedAdapter adapter = parse_module(module);
    for (const NamedAdapter& other : adapters)
      if (other.name == adapter.name) refuse(module, "has a name that comes twice");
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

}  // namespace headroom
