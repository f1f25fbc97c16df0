// What the planner is asked: a forward graph, the options that fix the arithmetic, what is pinned, and the budget.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/profile.h"
#include "ir/graph.h"
#include "optim/optimizer.h"
#include "passes/freeze.h"
#include "passes/lora.h"
#include "plan/plan.h"

namespace headroom {

struct PlanRequest {
  std::string model;  // its name in the plan
  int64_t parameters = 0;
  Graph forward;  // programs "load" and "forward" (models/decoder.h)
  int64_t seq_length = 0;
  int64_t global_batch = 8;
  std::string precision = "32-true";
  std::string matmul_precision = "highest";  // of fp32 products: highest, high or medium
  LoraOptions lora;                          // adapters (passes/lora.h)
  std::vector<std::string> freeze;           // patterns of weights that are not trained (passes/freeze.h)
  bool packing = false;                      // several rows in a sequence (passes/packing.h)
  bool length_buckets = false;               // batches of similar lengths (passes/length_buckets.h)
  std::string data_order_why;                // what asked for it: "named by --packing"
  OptimizerSettings optimizer;
  bool clips = true;  // by global norm
  bool arithmetic_fixed = false;
  int64_t micro_batch = 0;                        // pinned; 0 = the planner's choice
  int64_t loss_chunk = -1;                        // pinned rows; -1 = the planner's choice, 0 = all rows at once
  std::map<std::string, std::string> techniques;  // name -> on | off | value
  int64_t budget_bytes = 0;
  int64_t host_budget_bytes = 0;  // of the host's memory beside a device with its own; 0: nothing may be kept there
  int64_t disk_budget_bytes = 0;  // of a file on disk below the device; 0: nothing may be kept there
  DeviceFacts facts;
  Profile profile;
  ProcessBytes process;       // everything outside the arena but its page tables; `copies` as if something lay on disk
  ProcessBytes host_process;  // the same on the host, when the device has its own memory
  PrepareBytes prepare;       // of the host
  int64_t staging_bytes = int64_t{4} << 20;  // host buffer for load and save

  TierBytes budgets() const { return {budget_bytes, host_budget_bytes, disk_budget_bytes}; }
};

// What `--technique NAME=` says, or nothing.
inline std::string pin(const PlanRequest& request, std::string_view name) {
  const auto at = request.techniques.find(std::string(name));
  return at == request.techniques.end() ? std::string() : at->second;
}

// Checks names and values of `techniques` and that pins can be honoured. Throws Error(usage) with the nearest name and
// the reason.
void check_techniques(const PlanRequest& request);

}  // namespace headroom
