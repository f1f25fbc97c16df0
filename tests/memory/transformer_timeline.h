// Timelines like those of transformer training, for tests of offset assignment.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/buffer.h"

namespace headroom::testing {

// How backward gets what it needs of a layer.
enum class KeptActivations {
  all,            // everything is saved in forward
  cheap_dropped,  // norms, activations and attention probabilities are recomputed directly before use
  input_only,     // the layer's input is saved, and the whole forward is recomputed in backward
  mixed,          // early layers input_only, middle layers cheap_dropped, late layers all
};

enum class WeightGradients {
  fused,        // consumed by the weight's update directly after its backward
  kept,         // live until the optimizer step after backward
  accumulated,  // persistent buffers that are added to
};

struct TransformerTimeline {
  int layers = 12;
  int64_t tokens = 512;
  int64_t hidden = 768;
  int64_t ffn = 3072;
  int64_t vocab = 50257;
  int64_t heads = 12;
  int loss_chunks = 4;
  KeptActivations kept = KeptActivations::all;
  WeightGradients gradients = WeightGradients::fused;
};

// Forward, loss, backward with the chosen recomputation, optimizer. Buffer ids are their indices.
std::vector<Buffer> make_transformer_timeline(const TransformerTimeline& options);

}  // namespace headroom::testing
