// What a technique is to the rest of headroom: a record that feeds `--help`, the documentation, `plan --explain` and
// doctor, and one function that rewrites the graph. Every rewrite goes through run_pass.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// How a technique relates to the plain run's arithmetic (architecture.md, promise 4).
enum class TechniqueKind : uint8_t { exact, reassociating, data_order, lossy };
std::string_view kind_name(TechniqueKind kind);

// Before autodiff (rewrites the forward graph) or after it (moves, drops or splits values).
enum class PassStage : uint8_t { model, schedule };

struct PassInfo {
  std::string_view name;
  PassStage stage = PassStage::schedule;
  TechniqueKind kind = TechniqueKind::exact;
  std::string_view description;  // one line: help, documentation, remedy
};

// Every technique of this version, in the order of the pipeline.
std::span<const PassInfo* const> all_passes();

// One step of the pipeline as it ran.
struct PassTrace {
  std::string_view name;
  double seconds = 0;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
};

// Runs `body` on the graph, times it and, with `verify`, checks every rule of the IR; a broken rule names this pass.
void run_pass(const PassInfo& info, Graph& graph, bool verify, std::vector<PassTrace>* trace,
              const std::function<void(Graph&)>& body);

}  // namespace headroom
