// The sizes of a server of embeddings: an encoder reads whole sequences in one step.
#pragma once

#include <vector>

#include "engine/serving.h"
#include "models/model_spec.h"

namespace headroom {

// The options with each size that the budget may choose from, the largest first: fewer tokens in a step down to one
// sequence of the longest, then shorter sequences, both by halves. What is given stays. Throws Error(usage) if the
// options do not apply to an encoder, or contradict each other. Thread-safe.
std::vector<ServingOptions> encoder_sizes(const ServingOptions& asked, const ModelSpec& spec);

}  // namespace headroom
