// The tests of tests/cuda_ops on a GPU: operands are in memory that host and device both reach, kernels are compiled by
// nvcc, and the libraries are NVIDIA's. Every kernel runs twice and must give the same bits.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda_shim/place.h"
#include "device/cuda/cuda_device.h"
#include "ops/cuda/cublaslt.h"
#include "ops/cuda/cudnn.h"
#include "ops_support/operand_memory.h"

namespace headroom::op_test {
namespace {

int device_index() {
  const char* const named = std::getenv("HEADROOM_TEST_DEVICE");
  return named ? std::atoi(named) : 0;
}

class Gpu final : public Place {
 public:
  Gpu() : runtime_(open_cuda_runtime(device_index())), properties_(runtime_->properties()) {
    std::string reason;
    blas_ = open_cublaslt(reason);
    if (!blas_) std::printf("without cuBLASLt: %s\n", reason.c_str());
    dnn_ = open_cudnn(properties_.capability, reason);
    if (!dnn_) std::printf("without cuDNN: %s\n", reason.c_str());
  }

  CudaContext context() override {
    CudaContext context;
    context.facts = facts_of(properties_);
    context.multiprocessors = properties_.multiprocessors;
    context.shared_bytes = properties_.shared_bytes;
    return context;
  }
  CudaBlas* blas() override { return blas_.get(); }
  CudaDnn* dnn() override { return dnn_.get(); }

  std::shared_ptr<std::byte> pinned(int64_t bytes) override {
    return {runtime_->allocate_pinned(bytes), [this](std::byte* host) { runtime_->release_pinned(host); }};
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream stream) override {
    runtime_->copy(to, from, bytes, stream);
  }
  void fill(void* at, int value, int64_t bytes, CudaStream stream) override {
    runtime_->fill(at, value, bytes, stream);
  }
  int runs() const override { return 2; }
  void begin_run(int) override {}
  void finish(CudaStream stream) override { runtime_->synchronize(stream); }

  std::string description() const {
    return properties_.name + ", compute capability " + std::to_string(properties_.capability / 10) + "." +
           std::to_string(properties_.capability % 10);
  }

 private:
  std::unique_ptr<CudaRuntime> runtime_;
  CudaProperties properties_;
  std::unique_ptr<CudaBlas> blas_;
  std::unique_ptr<CudaDnn> dnn_;
};

Gpu& gpu() {
  static Gpu device;
  return device;
}

std::byte* allocate_managed(size_t bytes) {
  void* memory = nullptr;
  if (cudaMallocManaged(&memory, bytes) != cudaSuccess) throw Error(ErrorKind::run, "no managed memory", "free some");
  return static_cast<std::byte*>(memory);
}

void release_managed(std::byte* memory) noexcept { cudaFree(memory); }

}  // namespace

Place& place() { return gpu(); }

// Returns false, with the reason printed, when there is no device.
bool begin_on_device() {
  try {
    std::printf("on %s\n", gpu().description().c_str());
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    return false;
  }
  operand_memory() = {allocate_managed, release_managed};
  return true;
}

}  // namespace headroom::op_test

// Without a device nothing runs, which is not a failure: exit code 77, ctest's SKIP_RETURN_CODE.
int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (!headroom::op_test::begin_on_device()) return 77;
  // The fakes multiply on the host as soon as they are called; so do those of fp8 when the library is missing.
  if (GTEST_FLAG_GET(filter) == "*")
    GTEST_FLAG_SET(filter, headroom::op_test::place().blas() ? "-*ByLibrary*" : "-*ByLibrary*:CudaFp8*");
  return RUN_ALL_TESTS();
}
