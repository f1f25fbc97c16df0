// Where the CUDA kernels of a test run: on the shim (shim_place.cpp) or on a device
// (tests/cuda_on_device/device_place.cpp).
#pragma once

#include <memory>

#include "ops/cuda/blas.h"
#include "ops/cuda/dnn.h"
#include "ops/cuda/kernel.h"

namespace headroom::op_test {

class Place {
 public:
  virtual ~Place() = default;
  // Facts and limits of the GPU, a made-up one on the shim; its services are null.
  virtual CudaContext context() = 0;
  // The device's libraries, opened once; null where there are none.
  virtual CudaBlas* blas() { return nullptr; }
  virtual CudaDnn* dnn() { return nullptr; }

  virtual std::shared_ptr<std::byte> pinned(int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes, CudaStream stream) = 0;
  virtual void fill(void* at, int value, int64_t bytes, CudaStream stream) = 0;

  // From here to end_runs kernels run only what is loaded between: begin_loading.
  virtual void begin_loading() {}
  // A kernel runs so often, and must give the same bits: in several orders of the threads, or again.
  virtual int runs() const = 0;
  virtual void begin_run(int run) = 0;
  virtual void end_runs() {}
  // What was queued is done.
  virtual void finish(CudaStream stream) = 0;
};

Place& place();

}  // namespace headroom::op_test
