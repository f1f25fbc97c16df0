// Rehearsals of work of libraries: their code is loaded and nothing runs.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Calls queue(context, stream) with a stream that records, makes an executable graph of the recording on the device,
// which loads the code of its kernels, and destroys it. Kernels accept any address; fills and copies need device memory
// (RehearsalMemory). Throws Error(run) with the driver's message. With the test shim, which has no code to load, it
// only calls `queue` in LaunchMode::load, in which fakes of libraries do nothing.
void rehearse(void (*queue)(const void* context, CudaStream stream), const void* context);

// Device memory that replaces operands and workspace during a rehearsal.
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
