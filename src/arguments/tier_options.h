// Options of the tiers below the device and of the techniques that use them: for train, plan, evaluate and generate.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "arguments/option.h"
#include "options/machine_options.h"
#include "options/technique_options.h"
#include "passes/pass.h"

namespace headroom {

// Parsed text that becomes part of the options after parsing.
struct TierArguments {
  std::string disk_memory;              // DIR:SIZE
  std::vector<std::string> techniques;  // NAME=VALUE
};

// Adds --host-memory, --disk-memory and --technique; `waiting` names what --disk-memory can hold, for its help.
void add_tier_options(CLI::App& app, MachineOptions& options, TierArguments& arguments, const std::string& waiting);

// The help text about a command's techniques.
std::string technique_help(std::span<const PassInfo* const> passes);

// Fills directory, budgets and techniques; a GPU's host budget has a default. Throws Error(usage).
void resolve_tiers(const TierArguments& arguments, MachineOptions& options, TechniqueOptions& techniques);

}  // namespace headroom
