// Work of outside libraries queued for show: their code is loaded, nothing runs.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Calls queue(context, stream) with a stream that records instead of running, turns what was recorded into an
// executable graph on the device, which loads the code of its kernels, and drops it. Kernels take any address; fills
// and copies only what lies in device memory (RehearsalMemory). Throws Error(run) with the driver's words. Over the
// shim, which has no code to load, only calls it, in LaunchMode::load, in which fakes of libraries run nothing.
void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context);

// Device memory that stands in for operands and workspace while work is rehearsed.
class RehearsalMemory {
 public:
  explicit RehearsalMemory(int64_t bytes);  // Throws Error(run) when the device is full.
  ~RehearsalMemory();
  RehearsalMemory(const RehearsalMemory&) = delete;
  RehearsalMemory& operator=(const RehearsalMemory&) = delete;
  void* at() const { return at_; }

 private:
  void* at_ = nullptr;
};

// Rehearses queue(at, stream) with `bytes` of such memory at `at`.
template <typename Queue>
void rehearse_in(int64_t bytes, const Queue& queue) {
  struct Show {
    const Queue& queue;
    void* at;
  };
  const RehearsalMemory memory(bytes);
  const Show show{queue, memory.at()};
  rehearse(
      [](const void* context, CudaStream stream) {
        const auto& [call, at] = *static_cast<const Show*>(context);
        call(at, stream);
      },
      &show);
}

}  // namespace headroom::cuda
