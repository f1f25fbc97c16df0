// What DDP, FSDP and ZeRO leave on one device, and what they need for a moment.
#pragma once

#include "doctor/model/optimizer_memory.h"

namespace headroom::doctor {

// Bytes on one device. Host bytes are per process.
struct ModelStates {
  Bytes weights, masters, gradients, states;
  Bytes gathered;   // parameters and gradients of the units that are whole for a moment, buckets
  Bytes step;       // temporaries of the optimizer step
  double host = 0;  // offloaded, pinned
  double disk = 0;  // offloaded to NVMe
};
ModelStates model_states(const ModelShape& shape, const TrainSettings& settings);

}  // namespace headroom::doctor
