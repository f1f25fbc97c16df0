// What autograd keeps between forward and backward, module by module, for each library's modules.
#pragma once

#include "doctor/model/weight_memory.h"

namespace headroom::doctor {

// Bytes of one layer, for all tokens of a micro-batch on one device.
struct LayerActivations {
  double saved = 0;     // kept for backward
  double boundary = 0;  // the layer's input, which is all that full checkpointing keeps
  double backward = 0;  // largest temporaries of its backward
  double forward = 0;   // temporaries of its forward without gradients (evaluation)
  std::string how;
};
LayerActivations layer_activations(const ModelShape& shape, const TrainSettings& settings);

// The whole network: bytes kept at the end of the forward pass, after checkpointing and offload.
struct Activations {
  Bytes kept;
  double recomputed = 0;  // one layer's saved bytes, computed again for its backward under checkpointing
  double backward = 0;    // temporaries
};
Activations network_activations(const ModelShape& shape, const TrainSettings& settings);

// Bytes of the language-model head and its loss.
struct LossBytes {
  double alive = 0;       // kept from forward until at least the loss's backward
  double peak = 0;        // the most around the loss, `alive` included
  double evaluation = 0;  // the most without gradients
  std::string how;
};
LossBytes loss_bytes(const ModelShape& shape, const TrainSettings& settings);

}  // namespace headroom::doctor
