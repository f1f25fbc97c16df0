// Bytes of optimizer states, and temporaries of an optimizer step.
#pragma once

#include "doctor/model/weight_memory.h"

namespace headroom::doctor {

struct OptimizerBytes {
  Bytes states;
  Bytes step;          // temporaries of one step, unsharded
  bool paged = false;  // the driver may move the states to host memory
  bool known = true;   // the optimizer's name is known
};

// For `parameters` trained elements (the whole model or the adapters).
OptimizerBytes optimizer_bytes(const ModelShape& shape, const TrainSettings& settings, double parameters);

}  // namespace headroom::doctor
