#include "engine/lora_modules.h"

#include <algorithm>

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

std::vector<NamedAdapter> parse_lora_modules(const std::vector<std::string>& modules) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& module : modules) {
    NamedAdapter adapter = parse_module(module);
    for (const NamedAdapter& other : adapters)
      if (other.name == adapter.name) refuse(module, "has a name that appears twice");
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

}  // namespace headroom
