// A fake attention library that computes with the CPU's reference kernels and records what it is asked.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda_shim/cuda_harness.h"
#include "cuda_shim/cuda_shim.h"
#include "ops/cuda/dnn.h"

namespace headroom::op_test {

// `attention` (or `attention_grad`) with bf16 operands: the call's spec, with the scratch that the op's rule books.
inline KernelSpec attention_spec(const AttentionShape& shape, bool gradient, const DeviceFacts& facts) {
  const ConcreteType q{DType::bf16, {shape.batch, shape.queries, shape.heads * shape.dim}, {}};
  const ConcreteType k{DType::bf16, {shape.batch, shape.keys, shape.kv_heads * shape.dim}, {}};
  const ConcreteType lse{DType::f32, {shape.batch, shape.heads, shape.queries}, {}};
  KernelSpec spec{gradient ? "attention_grad" : "attention",
                  {{"heads", shape.heads},
                   {"kv_heads", shape.kv_heads},
                   {"causal", int64_t{shape.causal}},
                   {"window", shape.window},
                   {"scale", shape.scale}},
                  {q, k, k},
                  {q, lse},
                  0};
  if (shape.any_order) spec.attrs.set("kernels", std::string(kCudnnAnyOrder));
  if (gradient) {
    spec.inputs.insert(spec.inputs.end(), {q, lse, q});
    spec.outputs = {q, k, k};
  }
  spec.scratch_bytes = scratch_bytes(find_op(spec.op), spec.call(), facts);
  return spec;
}

struct FakeDnnNotes {
  int prepared = 0;
  int loaded = 0;      // runs in LaunchMode::load
  bool fails = false;  // in the rehearsal
  int failed = 0;
  int runs = 0;           // others
  int gradient_runs = 0;  // of `runs`
  int in_any_order = 0;   // gradients asked for in any order
  int in_fixed_order = 0;
  bool is_old = false;    // does not support gradients in a fixed order
  int64_t workspace = 0;  // granted to the last call
};

template <typename Arrays>
class FakeDnnCall final : public CudaDnnCall<Arrays> {
 public:
  FakeDnnCall(const AttentionShape& shape, int64_t workspace, FakeDnnNotes& notes)
      : spec_(attention_spec(shape, kGradient, host_facts())),
        kernel_(make_cpu_kernel(spec_, host_facts(), "reference")),
        workspace_(workspace),
        notes_(notes) {}

  int64_t workspace_bytes() const override { return workspace_; }
  void run(const Arrays& arrays, void* workspace, CudaStream) const override {
    if (launch_mode() == LaunchMode::load) {
      EXPECT_EQ(arrays.q, nullptr);
      ++notes_.loaded;
      return;
    }
    cuda_shim::do_or_capture([this, arrays, workspace] { compute(arrays, workspace); });
  }

 private:
  static constexpr bool kGradient = std::is_same_v<Arrays, cuda::AttentionGradArrays>;

  void compute(const Arrays& arrays, void* workspace) const {
    ++notes_.runs;
    if (kGradient) ++notes_.gradient_runs;
    std::memset(workspace, 0x5A, static_cast<size_t>(workspace_));
    std::vector<const void*> in{arrays.q, arrays.k, arrays.v};
    std::vector<void*> out;
    if constexpr (kGradient) {
      in.insert(in.end(), {arrays.o, arrays.lse, arrays.grad_o});
      out = {arrays.dq, arrays.dk, arrays.dv};
    } else {
      out = {arrays.o, arrays.lse};
    }
    std::vector<TensorView> inputs, outputs;
    for (size_t i = 0; i < in.size(); ++i)
      inputs.push_back({const_cast<void*>(in[i]), spec_.inputs[i].dtype, spec_.inputs[i].dims});
    for (size_t i = 0; i < out.size(); ++i) outputs.push_back({out[i], spec_.outputs[i].dtype, spec_.outputs[i].dims});
    const GuardedBuffer scratch(spec_.scratch_bytes);
    kernel_->run({inputs, outputs, {scratch.data(), static_cast<size_t>(scratch.bytes())}});
  }

  KernelSpec spec_;
  std::unique_ptr<CpuKernel> kernel_;
  int64_t workspace_;
  FakeDnnNotes& notes_;
};

class FakeDnn final : public CudaDnn {
 public:
  explicit FakeDnn(FakeDnnNotes& notes, int64_t workspace = 0) : notes_(notes), workspace_(workspace) {}

  CudaAttentionOffer attention(const AttentionShape& shape, int64_t workspace) override {
    return offer<cuda::AttentionArrays>(shape, workspace);
  }
  CudaAttentionGradOffer attention_grad(const AttentionShape& shape, int64_t workspace) override {
    return offer<cuda::AttentionGradArrays>(shape, workspace);
  }
  std::string name() const override { return "a fake"; }
  std::string remark() const override { return notes_.failed == 0 ? "" : "attention by our own kernels"; }

 private:
  template <typename Arrays>
  CudaLibraryOffer<CudaDnnCall<Arrays>> offer(const AttentionShape& shape, int64_t workspace) {
    ++notes_.prepared;
    notes_.workspace = workspace;
    if (std::is_same_v<Arrays, cuda::AttentionGradArrays>) {
      ++(shape.any_order ? notes_.in_any_order : notes_.in_fixed_order);
      if (notes_.is_old && !shape.any_order) return {nullptr, "a fake is old"};
    }
    if (workspace_ > workspace) return {nullptr, fmt::format("a fake wants {} bytes", workspace_)};
    if (notes_.fails) {
      ++notes_.failed;
      return {nullptr, "a fake fails"};
    }
    return {std::make_shared<FakeDnnCall<Arrays>>(shape, workspace_, notes_), {}};
  }

  FakeDnnNotes& notes_;
  int64_t workspace_;
};

}  // namespace headroom::op_test
