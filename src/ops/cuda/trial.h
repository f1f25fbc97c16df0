// Measures work of libraries on the device: how long each of several alternatives takes, and whether they give the same
// bits.
#pragma once

#include <cstdint>

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// The seconds that one alternative took, and a checksum of its result's bits: different checksums mean different
// results.
struct Trial {
  double seconds = 0;
  uint64_t bits = 0;
};

// Device memory of `bytes` for operands, filled with numbers that are finite as f32, bf16 and fp8 and differ in sign,
// exponent and mantissa, so that another order of summation rounds differently. Absent with the test shim, and when the
// device has no room.
class TrialMemory {
 public:
  explicit TrialMemory(int64_t bytes);
  ~TrialMemory();
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  bool there() const { return at_ != nullptr; }
  void* at() const { return at_; }

  // Runs queue(context, stream) once for the bits of the `result_bytes` at `result`, which are refilled before, and
  // then for its time, the median of five runs. Waits for them. Throws Error(run) with the driver's message, and what
  // queue throws.
  Trial of(void (*queue)(const void* context, CudaStream stream), const void* context, int64_t result,
           int64_t result_bytes) const;

 private:
  void* at_ = nullptr;
  int64_t bytes_ = 0;
};

// The fastest of the alternatives that gave the same bits as the first, so that results do not depend on timings; the
// first unless another takes at least 2 % less. A pure function.
int64_t fastest_alike(const Trial* trials, int64_t count);

}  // namespace headroom::cuda
