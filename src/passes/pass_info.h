// The record of a technique, without the graph: what planner, `--help` and doctor say about it. The records themselves
// are in the headers of the passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom {

// How a technique relates to the plain run's arithmetic (docs/techniques/README.md).
enum class TechniqueKind : uint8_t { exact, reassociating, data_order, lossy };

constexpr std::string_view kind_name(TechniqueKind kind) {
  constexpr std::string_view names[] = {"exact", "reassociating", "data-order", "lossy"};
  return names[static_cast<size_t>(kind)];
}

// Before autodiff (rewrites the forward graph) or after it (moves, drops or splits values).
enum class PassStage : uint8_t { model, schedule };

struct PassInfo {
  std::string_view name;
  PassStage stage = PassStage::schedule;
  TechniqueKind kind = TechniqueKind::exact;
  std::string_view description;  // one line: help, documentation, remedy
};

}  // namespace headroom
