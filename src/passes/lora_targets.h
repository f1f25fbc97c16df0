// The products that have adapters, by the names of modules.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace headroom {

// A weight's name without ".weight".
std::string module_of(std::string_view weight);

// Whether a target of an adapter ("all-linear", or a pattern of passes/freeze.h) matches a module, by its name in the
// checkpoint or in transformers 5.
bool target_means(const std::string& target, const std::string& module);

// The weight of a product with a matrix of the checkpoint; kNone for other nodes.
ValueId product_weight(const Graph& graph, const Node& node);

// The logits of a router, in a region.
std::set<ValueId> router_logits(const Graph& graph, RegionId region);

}  // namespace headroom
