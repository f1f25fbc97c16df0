// The least budgets of a training run, by how far it may be from exact.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/technique_step.h"
#include "weights/model_files.h"

namespace headroom {

// What a run needs at least with techniques of one kind and of the kinds before it.
struct MinimumLevel {
  TechniqueKind allow = TechniqueKind::exact;
  int64_t minimum_bytes = 0;  // of --memory: one byte less is refused
  // For the fastest plan in this budget: the peaks of the tiers, as in plan.json, its seconds and techniques.
  int64_t host_bytes = 0;
  int64_t disk_bytes = 0;
  double step_seconds = 0;
  std::map<std::string, std::string> techniques;
  OptionValues changes;  // to the options, including --memory; an empty value removes the option
  std::string command;   // plans it; empty: the caller fills it in
};

// A level for each kind of technique; each needs at most as much as the one before:
// exact          --arithmetic fixed
// reassociating  the planner's default
// data-order     --allow data-order
// lossy          those lossy techniques of technique_steps() that lower it further, one after another, the one that
//                saves most first
// Options that are given (--precision, --lora-r, --technique) apply at every level; --arithmetic and --allow are what
// is varied. Plans about ten runs: seconds, for large models with tiers half a minute. Throws as plan_training(), and
// Error(does_not_fit) if the budgets of the lower tiers hold no plan.
std::vector<MinimumLevel> least_budgets(const TrainOptions& options, const ModelFiles& model);

// {"levels": [...]}, as `plan --minimum --json` writes it.
std::string minimum_json(const std::vector<MinimumLevel>& levels);
// A line per level with its techniques and its command below, for people.
std::string minimum_text(const std::vector<MinimumLevel>& levels);

}  // namespace headroom
