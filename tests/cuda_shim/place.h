// Where a test's CUDA kernels run: on the shim (shim_place.cpp) or on a device (tests/cuda_on_device/device_place.cpp).
#pragma once

#include <memory>

#include "ops/cuda/blas.h"
#include "ops/cuda/dnn.h"
#include "ops/cuda/kernel.h"

namespace headroom::op_test {

class Place {
 public:
  virtual ~Place() = default;
  // Facts and limits of the GPU, which is invented on the shim; its services are null.
  virtual CudaContext context() = 0;
  // The device's libraries, opened once; null if there are none.
  virtual CudaBlas* blas() { return nullptr; }
  virtual CudaDnn* dnn() { return nullptr; }

  virtual std::shared_ptr<std::byte> pinned(int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes, CudaStream stream) = 0;
  virtual void fill(void* at, int value, int64_t bytes, CudaStream stream) = 0;

  // Until end_runs, only kernels run that are loaded after begin_loading.
  virtual void begin_loading() {}
  // How often a kernel runs, which must give the same bits: in several orders of the threads, or repeatedly.
  virtual int runs() const = 0;
  virtual void begin_run(int run) = 0;
  virtual void end_runs() {}
  // Returns when the queued work is done.
  virtual void finish(CudaStream stream) = 0;
};

Place& place();

}  // namespace headroom::op_test
