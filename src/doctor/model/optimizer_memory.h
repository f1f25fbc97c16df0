// Bytes of optimizer states and of what an optimizer step needs for a moment.
#pragma once

#include "doctor/model/weight_memory.h"

namespace headroom::doctor {

struct OptimizerBytes {
  Bytes states;
  Bytes step;          // temporaries of one step, unsharded
  bool paged = false;  // may be evicted to host memory by the driver
  bool known = true;   // the optimizer's name is known
};

// For `parameters` trained elements (all of the model, or the adapters).
OptimizerBytes optimizer_bytes(const ModelShape& shape, const TrainSettings& settings, double parameters);

}  // namespace headroom::doctor
