// What stays on one device under DDP, FSDP and ZeRO, and their temporaries.
#pragma once

#include "doctor/model/optimizer_memory.h"

namespace headroom::doctor {

// Bytes on one device. Host bytes are per process.
struct ModelStates {
  Bytes weights, masters, gradients, states;
  Bytes gathered;   // parameters and gradients of the units that are gathered at a time; buckets
  Bytes step;       // temporaries of the optimizer step
  double host = 0;  // offloaded to pinned host memory
  double disk = 0;  // offloaded to NVMe
};
ModelStates model_states(const ModelShape& shape, const TrainSettings& settings);

}  // namespace headroom::doctor
