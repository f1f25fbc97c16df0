// What autograd keeps between forward and backward, module by module, as the modules of each library are written.
#pragma once

#include "doctor/model/weight_memory.h"

namespace headroom::doctor {

// Bytes of one layer, for all tokens of a micro-batch on one device.
struct LayerActivations {
  double saved = 0;     // kept for backward
  double boundary = 0;  // the layer's input, all that full checkpointing keeps
  double backward = 0;  // temporaries of its backward at their largest
  double forward = 0;   // temporaries of its forward without gradients, evaluation
  std::string how;
};
LayerActivations layer_activations(const ModelShape& shape, const TrainSettings& settings);

// Whole network: what is kept at the end of the forward pass, checkpointing and offload applied.
struct Activations {
  Bytes kept;
  double recomputed = 0;  // one layer's saved bytes again, while its backward runs under checkpointing
  double backward = 0;    // temporaries
};
Activations network_activations(const ModelShape& shape, const TrainSettings& settings);

// The language-model head and its loss.
struct LossBytes {
  double alive = 0;       // kept from forward until the loss's backward or longer
  double peak = 0;        // at most, around the loss, `alive` included
  double evaluation = 0;  // at most, without gradients
  std::string how;
};
LossBytes loss_bytes(const ModelShape& shape, const TrainSettings& settings);

}  // namespace headroom::doctor
