// CUDA kernels: prepared once from concrete types, then queued on streams without an allocation on host or device.
//
// An op's CUDA kernels are three files in its folder. cuda_kernels.cu has the device code and the functions that launch
// it; it includes only ops/cuda/*.cuh, so that nvcc, NVRTC and the test shim can compile it. cuda_kernels.h declares
// those functions, with plain types only. cuda.cpp matches specs with kernels, computes grids and registers them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ops/cuda/launch.h"
#include "ops/cuda/narrow_copy.h"
#include "ops/kernel.h"
#include "ops/kernel_table.h"

namespace headroom {

class CudaBlas;  // ops/cuda/blas.h
class CudaDnn;   // ops/cuda/dnn.h

// What kernels need from the backend besides launches. Calls on one stream run in order.
class CudaServices {
 public:
  virtual ~CudaServices() = default;

  // Page-locked host memory that lives as long as the device; only while kernels are prepared. Throws Error(run).
  virtual std::span<std::byte> pinned(int64_t bytes) = 0;
  // Queues a copy between pinned host memory and device memory, in either direction.
  virtual void copy(void* to, const void* from, int64_t bytes, CudaStream stream) = 0;
  // Queues a fill with a byte.
  virtual void fill(void* at, int value, int64_t bytes, CudaStream stream) = 0;
  // A mark in the stream; wait_for() returns when the stream has reached it.
  virtual int mark(CudaStream stream) = 0;
  virtual void wait_for(int mark) = 0;

  // Libraries; null if they are not installed or not wanted.
  virtual CudaBlas* blas() { return nullptr; }
  virtual CudaDnn* dnn() { return nullptr; }
};

// What kernels are prepared for. The facts are a GPU's.
struct CudaContext {
  DeviceFacts facts;
  int multiprocessors = 1;
  int64_t shared_bytes = 48 << 10;  // maximum dynamic shared memory of a block
  CudaServices* services = nullptr;
};

class CudaKernel {
 public:
  virtual ~CudaKernel() = default;
  // Queues the work on `stream`. Operands and scratch are device memory, which the host does not access here. In
  // LaunchMode::load the addresses may be null. Does not allocate, and waits only for the kernel's own pinned buffers.
  virtual void enqueue(const KernelCall& call, CudaStream stream) const = 0;
  // Whether all calls with the same operands queue the same work, except that trip 0 may differ from later trips.
  virtual bool replays() const { return true; }
};

using CudaOffer = Offer<CudaKernel>;

struct CudaCandidate {
  std::string_view implementation;  // "cublaslt", "cudnn", "mma", "fused", "plain"
  CudaOffer (*make)(const KernelSpec& spec, const CudaContext& context) = nullptr;
};

using CudaKernels = KernelTable<CudaCandidate>;

// All CUDA kernels of this build, created once. Thread-safe.
const CudaKernels& cuda_kernels();

// The first candidate that accepts; `only` restricts to one implementation. Throws InternalError with all refusals when
// none accepts.
std::unique_ptr<CudaKernel> make_cuda_kernel(const KernelSpec& spec, const CudaContext& context,
                                             std::string_view only = {}, std::string* chosen = nullptr);

// The element type for launchers. Throws InternalError for types other than f32, bf16 and f16.
cuda::FloatType float_type(DType dtype);
// The copy of the weight that an update writes as output `index`; none if it has no such output.
inline cuda::NarrowCopy narrow_copy(const KernelCall& call, size_t index) {
  if (call.outputs.size() <= index) return {};
  return {call.outputs[index].data, float_type(call.outputs[index].dtype)};
}
inline int64_t count_of(const ConcreteType& type) { return element_count(type.dims); }

// A kernel from a callable (call, stream).
template <typename F>
std::unique_ptr<CudaKernel> cuda_kernel_of(F body, bool replays = true) {
  class Lambda final : public CudaKernel {
   public:
    Lambda(F body, bool replays) : body_(std::move(body)), replays_(replays) {}
    void enqueue(const KernelCall& call, CudaStream stream) const override { body_(call, stream); }
    bool replays() const override { return replays_; }

   private:
    F body_;
    bool replays_;
  };
  return std::make_unique<Lambda>(std::move(body), replays);
}

// The only candidate of an op, for a kernel that accepts every legal spec.
template <auto Make>
std::vector<CudaCandidate> one_cuda_kernel() {
  return {{"fused", [](const KernelSpec& spec, const CudaContext& context) -> CudaOffer {
             return {Make(spec, context), {}};
           }}};
}

}  // namespace headroom
