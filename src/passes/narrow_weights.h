// Weights stored in a narrow type, bf16 or f16: the common part of the true precisions.
#pragma once

#include "passes/pass.h"

namespace headroom {

// Rewrites the weights of the graph and the region of every program that reads them, for training: adapters stay wide,
// vectors (norm weights, biases) are stored narrow and widened where they are read.
void store_weights_to_train(Graph& graph, DType narrow);
// The same without updates: adapters are stored narrow, rounded once instead of at every use, and vectors wide, as they
// are read.
void store_weights_to_read(Graph& graph, DType narrow);

}  // namespace headroom
