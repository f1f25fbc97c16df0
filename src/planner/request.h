// The planner's input: a forward graph, the options that fix the arithmetic, the pins, and the budget.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/profile.h"
#include "ir/graph.h"
#include "optim/optimizer.h"
#include "plan/plan.h"

namespace headroom {

// A user's setting of a technique: "on", "off" or one of its own settings.
struct Pin {
  Pin() = default;
  Pin(const char* said) : setting(said) {}
  Pin(std::string said, std::string by = {}) : setting(std::move(said)), why(std::move(by)) {}

  std::string setting;
  std::string why;  // where it comes from, for the plan: "named by --precision"; empty: --technique NAME=SETTING
};

struct PlanRequest {
  std::string model;  // its name in the plan
  int64_t parameters = 0;
  Graph forward;  // programs "load" and "forward" (models/decoder.h)
  int64_t seq_length = 0;
  int64_t global_batch = 8;
  OptimizerSettings optimizer;
  bool clips = true;  // by global norm
  bool arithmetic_fixed = false;
  std::map<std::string, Pin> techniques;  // by name
  int64_t budget_bytes = 0;
  int64_t host_budget_bytes = 0;  // of the host's memory, for a device with its own; 0: nothing may be kept there
  int64_t disk_budget_bytes = 0;  // of a file on disk below the device; 0: nothing may be kept there
  DeviceFacts facts;
  Profile profile;
  ProcessBytes process;       // everything outside the arena except page tables; `copies` as if the disk were used
  ProcessBytes host_process;  // the same on the host, when the device has its own memory
  PrepareBytes prepare;       // of the host
  int64_t staging_bytes = int64_t{4} << 20;  // host buffer for load and save

  TierBytes budgets() const { return {budget_bytes, host_budget_bytes, disk_budget_bytes}; }
};

// The pin of a technique, or nothing.
inline std::string pin(const PlanRequest& request, std::string_view name) {
  const auto at = request.techniques.find(std::string(name));
  return at == request.techniques.end() ? std::string() : at->second.setting;
}

}  // namespace headroom
