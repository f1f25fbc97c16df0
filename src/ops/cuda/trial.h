// Work of outside libraries tried on the device: how long each of several ways takes, and whether they give the same
// bits.
#pragma once

#include <cstdint>

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// What one way of doing a piece of work took, in seconds, and a sum over the bits of its result: ways whose sums differ
// gave different results.
struct Trial {
  double seconds = 0;
  uint64_t bits = 0;
};

// Device memory of `bytes` for operands, filled with numbers that are finite as f32, as bf16 and as fp8 and that differ
// in sign, in exponent and in mantissa, so that sums in another order round to other bits. Over the shim, and where the
// device has no room, there is none.
class TrialMemory {
 public:
  explicit TrialMemory(int64_t bytes);
  ~TrialMemory();
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  bool there() const { return at_ != nullptr; }
  void* at() const { return at_; }

  // Runs queue(context, stream) once for its bits, those of `result_bytes` from `result` on, which are filled again
  // before, then for its time: the median of five runs. Waits for them. Throws Error(run) with the driver's words, as
  // does what queue throws.
  Trial of(void (*queue)(const void* context, CudaStream stream), const void* context, int64_t result,
           int64_t result_bytes) const;

 private:
  void* at_ = nullptr;
  int64_t bytes_ = 0;
};

// Which of several ways to take: the fastest of those that gave the first one's bits, so that results do not depend on
// timings; the first unless another takes 2 % less. Pure.
int64_t fastest_alike(const Trial* trials, int64_t count);

}  // namespace headroom::cuda
