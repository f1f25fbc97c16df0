// The narrow copy of an f32 weight, which an optimizer's update refreshes.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

struct NarrowCopy {
  void* at = nullptr;  // null if there is none
  FloatType type = FloatType::bf16;
};

}  // namespace headroom::cuda
