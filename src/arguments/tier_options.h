// The options of memory below the device's and of the techniques that use it: of train, plan, evaluate and generate.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "arguments/option.h"
#include "passes/pass.h"
#include "train/options.h"

namespace headroom {

// Parsed text that becomes part of the options after parsing.
struct TierArguments {
  std::string disk_memory;              // DIR:SIZE
  std::vector<std::string> techniques;  // NAME=VALUE
};

// --host-memory, --disk-memory and --technique; `waiting` says what may wait on the disk.
void add_tier_options(CLI::App& app, MachineOptions& options, TierArguments& arguments, const std::string& waiting);

// What --help says of the techniques that a command knows.
std::string technique_help(std::span<const PassInfo* const> passes);

// Fills directory, budgets and techniques; a device's host budget has a default. Throws Error(usage).
void resolve_tiers(const TierArguments& arguments, MachineOptions& options, TechniqueOptions& techniques);

}  // namespace headroom
