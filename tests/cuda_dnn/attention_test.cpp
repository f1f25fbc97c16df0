// Attention by a library: when it is used, what it is given, and what the plan books for it.
#include "cuda_shim/host_runtime.h"
#include "device/cuda/cuda_device.h"
#include "fake_dnn.h"
#include "ops/attention/cuda_scratch.h"

namespace headroom {
namespace {

using namespace op_test;

AttentionShape shape_of(int64_t batch, int64_t length, int64_t heads, int64_t kv_heads, int64_t dim) {
  AttentionShape shape;
  shape.batch = batch;
  shape.queries = shape.keys = length;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.dim = dim;
  shape.scale = 0.3;
  return shape;
}

class DnnAttention : public testing::Test {
 protected:
  // The fake library on a Hopper.
  explicit DnnAttention() {
    services.attention = std::make_unique<FakeDnn>(notes);
    context = test_context(services);
    context.facts.capabilities = of_compute_capability(90);
  }

  std::string chosen(const KernelSpec& spec) {
    std::string implementation;
    make_cuda_kernel(spec, context, {}, &implementation);
    return implementation;
  }
  std::string refusal(const KernelSpec& spec) const {
    return cuda_kernels().candidates(spec.op).front().make(spec, context).refusal;
  }
  // The same call with changed operands; its scratch is booked again.
  template <typename Change>
  KernelSpec changed(const char* op, const Change& change) const {
    KernelSpec spec = attention_spec(shape_of(1, 8, 2, 1, 64), op == std::string("attention_grad"), context.facts);
    change(spec);
    spec.scratch_bytes = scratch_bytes(find_op(op), spec.call(), context.facts);
    return spec;
  }

  void expect_as_reference(const KernelSpec& spec) {
    std::vector<Tensor> inputs;
    for (const ConcreteType& type : spec.inputs)
      inputs.push_back(Tensor::random(type.dtype, type.dims, inputs.size() + 1));
    std::string implementation;
    const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, {}, &implementation);
    ASSERT_EQ(implementation, "cudnn");
    EXPECT_EQ(notes.workspace, spec.scratch_bytes);
    const std::vector<Tensor> found =
        run_call(spec, inputs, {}, implementation, [&](const KernelCall& call) { kernel->enqueue(call, nullptr); });
    RunOptions plain;
    plain.only = "reference";
    const std::vector<Tensor> expected = run_op(spec.op, inputs, spec.attrs, plain).outputs;
    for (size_t i = 0; i < expected.size(); ++i) expect_same_bytes(found[i], expected[i]);
  }

  FakeDnnNotes notes;
  TestServices services;
  CudaContext context;
};

// Every operand is in its place: the fake's results are bitwise those of the kernels that it calls.
TEST_F(DnnAttention, GivesTheLibraryItsOperands) {
  for (bool gradient : {false, true}) {
    AttentionShape shape = shape_of(2, 9, 4, 2, 64);
    expect_as_reference(attention_spec(shape, gradient, context.facts));
    shape.window = 3;
    expect_as_reference(attention_spec(shape, gradient, context.facts));
    shape = shape_of(1, 5, 3, 1, 72);
    shape.causal = false;
    expect_as_reference(attention_spec(shape, gradient, context.facts));
    expect_as_reference(attention_spec(shape_of(3, 4, 2, 2, 256), gradient, context.facts));
  }
  EXPECT_EQ(notes.runs, 8);
}

TEST_F(DnnAttention, RefusesWhatTheLibraryDoesNotTake) {
  for (const char* op : {"attention", "attention_grad"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(chosen(changed(op, [](KernelSpec&) {})), "cudnn");
    const auto expect = [&](const char* reason, const auto& change) {
      const KernelSpec spec = changed(op, change);
      EXPECT_EQ(refusal(spec), reason);
      EXPECT_NE(chosen(spec), "cudnn");
    };
    notes.prepared = 0;
    expect("operands are not all bf16", [](KernelSpec& spec) {
      for (ConcreteType& type : spec.inputs) type.dtype = DType::f32;
    });
    expect("rows have padding or segments", [](KernelSpec& spec) { spec.inputs.push_back({DType::i32, {1}, {}}); });
    expect("rows have padding or segments", [](KernelSpec& spec) { spec.inputs.push_back({DType::i32, {1, 8}, {}}); });
    expect("scores are soft-capped", [](KernelSpec& spec) { spec.attrs.set("softcap", 30.0); });
    for (int64_t dim : {60, 264})
      expect("the head size is not a multiple of 8, or is above 256", [dim](KernelSpec& spec) {
        for (ConcreteType& type : spec.inputs)
          if (type.dtype == DType::bf16) type.dims[2] = type.dims[2] / 64 * dim;
      });
    context.facts.capabilities = of_compute_capability(75);
    expect("needs compute capability 8.0", [](KernelSpec&) {});
    context.facts.capabilities = of_compute_capability(90);
    EXPECT_EQ(notes.prepared, 0);
  }
}

TEST_F(DnnAttention, TakesGradientsOnHopperOnly) {
  for (int capability : {80, 86, 89, 100, 120}) {
    context.facts.capabilities = of_compute_capability(capability);
    EXPECT_EQ(chosen(changed("attention", [](KernelSpec&) {})), "cudnn") << capability;
    EXPECT_EQ(refusal(changed("attention_grad", [](KernelSpec&) {})),
              "the workspace of its gradient is linear in the length on Hopper only");
  }
}

// The plan says so with an attribute and books nothing for the library.
TEST_F(DnnAttention, OurOwnKernelsServeWhereThePlanTakesThem) {
  for (const char* op : {"attention", "attention_grad"}) {
    const auto with = [&](std::string_view kernels) {
      return changed(op, [&](KernelSpec& spec) { spec.attrs.set("kernels", std::string(kernels)); });
    };
    EXPECT_EQ(chosen(with(kOwnKernels)), "mma");
    EXPECT_EQ(refusal(with(kOwnKernels)), "the plan takes our own kernels");
    EXPECT_EQ(chosen(with(kCudnnKernels)), "cudnn");
    EXPECT_LT(with(kOwnKernels).scratch_bytes, kCudnnSpare);
    EXPECT_EQ(with(kCudnnKernels).scratch_bytes, changed(op, [](KernelSpec&) {}).scratch_bytes);
    services.attention = nullptr;
    EXPECT_EQ(chosen(with(kCudnnKernels)), "mma");
    services.attention = std::make_unique<FakeDnn>(notes);
  }
}

// The workspace of sums in any order is linear in the length everywhere; except on 9.x and 10.x, dq is kept twice.
TEST_F(DnnAttention, TakesGradientsInAnyOrderWhereverItIsAsked) {
  const auto any_order = [](KernelSpec& spec) { spec.attrs.set("kernels", std::string(kCudnnAnyOrder)); };
  for (const int capability : {80, 86, 89, 90, 100, 103, 120}) {
    SCOPED_TRACE(capability);
    context.facts.capabilities = of_compute_capability(capability);
    const KernelSpec spec = changed("attention_grad", any_order);
    EXPECT_EQ(chosen(spec), "cudnn");
    EXPECT_TRUE(attention_shape(spec.call()).any_order);
    EXPECT_EQ(chosen(changed("attention_grad", [](KernelSpec&) {})) == "cudnn", capability == 90);
    // Two heads that share keys, and 8 queries, which count as 128.
    const int64_t copies = capability == 90 || capability == 100 || capability == 103 ? 1 : 2;
    EXPECT_EQ(spec.scratch_bytes - kCudnnSpare, 2 * 128 * (copies * 64 * 4 + 4 + 2 * 64 * 2) + 2 * 128 / 64 * 8);
  }
  context.facts.capabilities = of_compute_capability(75);
  EXPECT_EQ(refusal(changed("attention_grad", any_order)), "needs compute capability 8.0");
}

TEST_F(DnnAttention, OurOwnKernelsServeWithoutTheLibrary) {
  services.attention = nullptr;
  for (const char* op : {"attention", "attention_grad"}) {
    EXPECT_EQ(chosen(changed(op, [](KernelSpec&) {})), "mma");
    EXPECT_EQ(refusal(changed(op, [](KernelSpec&) {})), "the library is not there");
  }
}

TEST_F(DnnAttention, OurOwnKernelsServeWhereTheLibraryWantsMoreThanIsBooked) {
  const KernelSpec spec = attention_spec(shape_of(2, 100, 4, 2, 64), true, context.facts);
  services.attention = std::make_unique<FakeDnn>(notes, spec.scratch_bytes);
  EXPECT_EQ(chosen(spec), "cudnn");
  services.attention = std::make_unique<FakeDnn>(notes, spec.scratch_bytes + 1);
  EXPECT_EQ(chosen(spec), "mma");
  EXPECT_EQ(refusal(spec), fmt::format("a fake wants {} bytes", spec.scratch_bytes + 1));
}

// The booked workspace is linear in the length and a multiple of q's bytes.
TEST_F(DnnAttention, BooksTheLibrarysWorkspace) {
  const auto booked = [&](const AttentionShape& shape, bool gradient) {
    return attention_spec(shape, gradient, context.facts).scratch_bytes;
  };
  const AttentionShape shape = shape_of(2, 1024, 14, 2, 64), longer = shape_of(2, 4096, 14, 2, 64);
  const int64_t rows = 2 * 14 * 1024;
  EXPECT_EQ(booked(shape, false), kCudnnSpare);
  EXPECT_EQ(booked(longer, false), kCudnnSpare);
  // dq in fp32, a sum, dk and dv in bf16; eight bytes for 64 rows.
  EXPECT_EQ(booked(shape, true) - kCudnnSpare, rows * (64 * 4 + 4 + 2 * 64 * 2) + rows / 64 * 8);
  EXPECT_EQ(booked(longer, true) - kCudnnSpare, 4 * (booked(shape, true) - kCudnnSpare));
  EXPECT_EQ(booked(shape_of(2, 1024, 14, 14, 64), true) - kCudnnSpare, rows * (64 * 4 + 4) + rows / 64 * 8);
  context.facts.capabilities = of_compute_capability(80);
  EXPECT_EQ(booked(shape, true), rows * 4);  // what headroom's own kernels need
  context.facts.capabilities = of_compute_capability(75);
  EXPECT_EQ(booked(shape, false), 0);
}

TEST(DnnDevice, PreparingLoadsAndLaunchingRuns) {
  FakeDnnNotes notes;
  const std::unique_ptr<CudaRuntime> runtime = make_host_runtime();
  DeviceFacts facts = facts_of(runtime->properties());
  CudaLibraries libraries;
  libraries.dnn = std::make_unique<FakeDnn>(notes, 100);
  const std::unique_ptr<Device> device = make_cuda_device(make_host_runtime(), facts, std::move(libraries));
  const KernelSpec spec = attention_spec(shape_of(1, 4, 2, 1, 64), false, facts);
  const std::unique_ptr<DeviceKernel> kernel = device->prepare(spec);
  EXPECT_EQ(notes.loaded, 1);
  EXPECT_EQ(notes.runs, 0);
  std::vector<Tensor> inputs;
  for (const ConcreteType& type : spec.inputs)
    inputs.push_back(Tensor::random(type.dtype, type.dims, inputs.size() + 1));
  run_call(spec, inputs, {}, "cudnn", [&](const KernelCall& call) { device->launch(*kernel, call, 0); });
  EXPECT_EQ(notes.runs, 1);
}

}  // namespace
}  // namespace headroom
