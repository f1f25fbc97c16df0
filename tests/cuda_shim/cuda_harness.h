// Runs CUDA kernels of an op, on the shim or on a device, and compares them with the CPU's reference kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda_shim/place.h"
#include "ops_support/op_harness.h"

namespace headroom::op_test {

// The services that a device gives its kernels.
class TestServices final : public CudaServices {
 public:
  std::span<std::byte> pinned(int64_t bytes) override {
    blocks_.push_back(place().pinned(bytes));
    return {blocks_.back().get(), static_cast<size_t>(bytes)};
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream stream) override {
    if (launch_mode() == LaunchMode::run) place().copy(to, from, bytes, stream);
  }
  void fill(void* at, int value, int64_t bytes, CudaStream stream) override {
    if (launch_mode() == LaunchMode::run) place().fill(at, value, bytes, stream);
  }
  int mark(CudaStream stream) override {
    place().finish(stream);
    return 0;
  }
  void wait_for(int) override {}
  CudaBlas* blas() override { return products ? products.get() : place().blas(); }
  CudaDnn* dnn() override { return attention ? attention.get() : place().dnn(); }

  // Libraries that a test uses instead of the device's.
  std::unique_ptr<CudaBlas> products;
  std::unique_ptr<CudaDnn> attention;

 private:
  std::vector<std::shared_ptr<std::byte>> blocks_;
};

inline CudaContext test_context(CudaServices& services) {
  CudaContext context = place().context();
  context.services = &services;
  return context;
}

// Loads the kernel's code as a device does, before any memory is reserved.
inline void load_cuda_kernel(const CudaKernel& kernel, const KernelSpec& spec) {
  std::vector<TensorView> inputs, outputs;
  for (const ConcreteType& type : spec.inputs) inputs.push_back({nullptr, type.dtype, type.dims});
  for (const ConcreteType& type : spec.outputs) outputs.push_back({nullptr, type.dtype, type.dims});
  const LoadingOnly loading;
  kernel.enqueue({inputs, outputs, {static_cast<std::byte*>(nullptr), static_cast<size_t>(spec.scratch_bytes)}},
                 nullptr);
}

// Runs the op's CUDA kernel as often as the place requires, with the same bits each time; it may only launch what it
// has loaded.
inline RunResult run_cuda_op(std::string_view name, const std::vector<Tensor>& inputs, const Attrs& attrs = {},
                             RunOptions options = {}) {
  TestServices services;
  const CudaContext context = test_context(services);
  options.facts = context.facts;
  const KernelSpec spec = spec_of(name, inputs, attrs, options.facts);
  RunResult result;
  const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, options.only, &result.implementation);
  place().begin_loading();
  load_cuda_kernel(*kernel, spec);
  for (int run = 0; run < place().runs(); ++run) {
    place().begin_run(run);
    std::vector<Tensor> outputs = run_call(spec, inputs, options, result.implementation, [&](const KernelCall& call) {
      kernel->enqueue(call, nullptr);
      place().finish(nullptr);
    });
    if (result.outputs.empty())
      result.outputs = std::move(outputs);
    else
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(outputs[i].same_bytes(result.outputs[i]))
            << name << " (" << result.implementation << "): output " << i << " has other bits in run " << run;
  }
  place().end_runs();
  return result;
}

// The element types of kernels, and those that go together with one of them: a call never has both narrow types.
inline constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};
inline std::vector<DType> floats_with(DType other) {
  if (other == DType::f32) return {DType::f32, DType::bf16, DType::f16};
  return {DType::f32, other};
}
inline std::vector<const char*> names_with(DType other) {
  if (other == DType::f32) return {"f32", "bf16", "f16"};
  return {"f32", other == DType::f16 ? "f16" : "bf16"};
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
  TestServices services;
  const CudaContext context = test_context(services);
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
