#include "arguments/tier_options.h"

#include "base/error.h"
#include "device/device.h"
#include "engine/budget.h"

namespace headroom {
namespace {

// "/scratch:20GiB".
void parse_disk_memory(const std::string& text, MachineOptions& options) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw Error(ErrorKind::usage, fmt::format("--disk-memory {} is not a directory and a size", text),
                "write DIR:SIZE, for example /scratch:20GiB");
  options.disk_directory = text.substr(0, colon);
  options.disk_memory = parse_memory("--disk-memory", text.substr(colon + 1));
}

}  // namespace

void add_tier_options(CLI::App& app, MachineOptions& options, TierArguments& arguments, const std::string& waiting) {
  memory_option(app, "--host-memory", options.host_memory,
                "with a GPU: budget for host memory (default: 90 % of available memory); on the CPU use --memory");
  scalar(app, "--disk-memory", arguments.disk_memory,
         fmt::format("budget for a scratch file in DIR, which holds {} that are not in use", waiting))
      ->type_name("DIR:SIZE");
  app.add_option("--technique", arguments.techniques, "NAME=on|off|VALUE: pins or forbids a technique; repeatable");
}

std::string technique_help(std::span<const PassInfo* const> passes) {
  std::string text = "Techniques (--technique):\n";
  for (const PassInfo* pass : passes)
    text += fmt::format("  {:<22}{} ({})\n", pass->name, pass->description, kind_name(pass->kind));
  return text +
         "Offloads take on, off, host or disk; offload-activations and offload-parameters also take a number of "
         "layers: 12 or disk:12.\n";
}

void resolve_tiers(const TierArguments& arguments, MachineOptions& options, TechniqueOptions& techniques) {
  if (options.host_memory > 0 && device_kind(options.device) == DeviceKind::cpu)
    throw Error(ErrorKind::usage, "--host-memory is for GPUs; on the CPU --memory already bounds host memory",
                "give only --memory");
  if (!arguments.disk_memory.empty()) parse_disk_memory(arguments.disk_memory, options);
  for (const std::string& text : arguments.techniques) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorKind::usage, fmt::format("--technique {} has no setting", text),
                  "write NAME=on, NAME=off or NAME=VALUE");
    techniques.pins[text.substr(0, equals)] = text.substr(equals + 1);
  }
  if (options.host_memory == 0) options.host_memory = default_host_budget(options.device);
}

}  // namespace headroom
