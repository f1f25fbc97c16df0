// The techniques of a graph without a gradient: adapters, codes, precision, and optimisations.
#pragma once

#include <span>
#include <string>

#include "passes/lora_slots.h"
#include "planner/request.h"

namespace headroom {

// Whether a row of a product may depend on how many rows there are (passes/batch_invariant.h).
enum class ProductRows : uint8_t { any, invariant };

// Applies it to `programs` of a graph that has a program "load", to which the host's buffer is added. The first of them
// has every weight. `slots`: adapter slots of a server's steps. `verify`: the graph is checked after every pass.
Graph finished_generation(const PlanRequest& request, Graph graph, std::span<const std::string> programs,
                          ProductRows rows, const LoraSlots& slots, bool verify);

}  // namespace headroom
