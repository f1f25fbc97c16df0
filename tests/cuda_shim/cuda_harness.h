// Runs CUDA kernels of an op on the shim and compares them with the CPU's reference kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda_shim/cuda_shim.h"
#include "ops/cuda/blas.h"
#include "ops/cuda/dnn.h"
#include "ops/cuda/kernel.h"
#include "ops_support/op_harness.h"

namespace headroom::op_test {

// Host memory in the place of the device's: everything happens at once.
class ShimServices final : public CudaServices {
 public:
  std::span<std::byte> pinned(int64_t bytes) override {
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes)));
    return {blocks_.back().get(), static_cast<size_t>(bytes)};
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream) override {
    if (launch_mode() == LaunchMode::run) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void fill(void* at, int value, int64_t bytes, CudaStream) override {
    if (launch_mode() == LaunchMode::run) std::memset(at, value, static_cast<size_t>(bytes));
  }
  int mark(CudaStream) override { return 0; }
  void wait_for(int) override {}
  CudaBlas* blas() override { return products.get(); }
  CudaDnn* dnn() override { return attention.get(); }

  // Libraries that a test gives the device; it has none of its own.
  std::unique_ptr<CudaBlas> products;
  std::unique_ptr<CudaDnn> attention;

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// A made-up GPU: small, so that grids get several rounds of their loops.
inline CudaContext shim_context(CudaServices& services) {
  CudaContext context;
  context.facts.device = "cuda";
  context.facts.isa = 80;
  context.facts.native_bf16 = true;
  context.facts.alignment = 256;
  context.multiprocessors = 2;
  context.shared_bytes = 99 << 10;  // as 8.6 has, the least of 8.0 and later
  context.services = &services;
  return context;
}

// Loads the kernel's code as a device does, before any memory is there.
inline void load_cuda_kernel(const CudaKernel& kernel, const KernelSpec& spec) {
  std::vector<TensorView> inputs, outputs;
  for (const ConcreteType& type : spec.inputs) inputs.push_back({nullptr, type.dtype, type.dims});
  for (const ConcreteType& type : spec.outputs) outputs.push_back({nullptr, type.dtype, type.dims});
  set_launch_mode(LaunchMode::load);
  kernel.enqueue({inputs, outputs, {static_cast<std::byte*>(nullptr), static_cast<size_t>(spec.scratch_bytes)}},
                 nullptr);
  set_launch_mode(LaunchMode::run);
}

// Runs the op's CUDA kernel in three orders of the threads, which must agree bitwise; it may launch only what it loads.
inline RunResult run_cuda_op(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs = {},
                             RunOptions options = {}) {
  ShimServices services;
  const CudaContext context = shim_context(services);
  options.facts = context.facts;
  const KernelSpec spec = spec_of(name, inputs, attrs, options.facts);
  RunResult result;
  const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, options.only, &result.implementation);
  cuda_shim::demand_loading(true);
  load_cuda_kernel(*kernel, spec);
  for (cuda_shim::Order order : {cuda_shim::Order::forward, cuda_shim::Order::backward, cuda_shim::Order::shuffled}) {
    cuda_shim::set_order(order);
    std::vector<Tensor> outputs = run_call(spec, inputs, options, result.implementation,
                                           [&](const KernelCall& call) { kernel->enqueue(call, nullptr); });
    cuda_shim::set_order(cuda_shim::Order::forward);
    if (result.outputs.empty())
      result.outputs = std::move(outputs);
    else
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(outputs[i].same_bytes(result.outputs[i]))
            << name << " (" << result.implementation << "): output " << i << " depends on the order of the threads";
  }
  cuda_shim::demand_loading(false);
  return result;
}

struct Tolerance {
  double absolute = 1e-6;
  double relative = 1e-5;
};

// Every CUDA implementation of the op that accepts the call, against the CPU's reference kernel.
inline void expect_cuda_matches(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs = {},
                                Tolerance tolerance = {}, RunOptions options = {}) {
  RunOptions plain = options;
  plain.only = "reference";
  const RunResult expected = run_op(name, inputs, attrs, plain);
  ShimServices services;
  const CudaContext context = shim_context(services);
  const KernelSpec spec = spec_of(name, inputs, attrs, context.facts);
  int accepted = 0;
  for (const CudaCandidate& candidate : cuda_kernels().candidates(name)) {
    if (!candidate.make(spec, context).kernel) continue;
    ++accepted;
    options.only = candidate.implementation;
    const RunResult found = run_cuda_op(name, inputs, attrs, options);
    SCOPED_TRACE(std::string(name) + " by " + std::string(candidate.implementation));
    for (size_t i = 0; i < expected.outputs.size(); ++i)
      expect_close(found.outputs[i], expected.outputs[i], tolerance.absolute, tolerance.relative);
  }
  EXPECT_GT(accepted, 0) << name << ": no CUDA kernel takes the call";
}

}  // namespace headroom::op_test
