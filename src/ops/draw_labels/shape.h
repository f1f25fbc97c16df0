// The sizes behind drawn labels, shared by rules and kernels: those of the loss (loss_shape()), with a chunk of their
// own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

// The inputs of every call; the first three are those of the loss.
struct DrawInputs {
  enum : int { x, weight, labels, hyper, bias };
};

// Rows whose logits exist at a time, whatever the loss's chunk is: 8 MiB on a CPU. A GPU, which reads the weight for
// each chunk, takes 64 MiB.
inline int64_t drawn_rows(int64_t vocabulary, const DeviceFacts& facts) {
  const int64_t elements = int64_t{facts.is_cpu() ? 2 : 16} << 20;
  return std::max<int64_t>(1, elements / vocabulary);
}

}  // namespace headroom
