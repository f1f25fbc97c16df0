// Weights stored in a narrow type, bf16 or f16: what the true precisions have in common.
#pragma once

#include "passes/pass.h"

namespace headroom {

// Rewrites the weights of the graph and the region of every program that reads them. Adapters that no update will touch
// may be stored narrow too: they are rounded once instead of at every use.
enum class Adapters : uint8_t { wide, narrow };
void store_weights(Graph& graph, DType narrow, Adapters adapters);

}  // namespace headroom
