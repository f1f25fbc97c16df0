#include <initializer_list>

#include "cuda_shim/cuda_harness.h"
#include "ops/attention/kernel_choice.h"

namespace headroom::attention_on_cuda {
namespace {

using namespace op_test;

struct Call {
  int64_t batch = 1, queries = 1, heads = 1, kv_heads = 1, dim = 8;
  bool causal = true;
  int64_t window = 0;
  double softcap = 0;
  double scale = 0;
  double dropout = 0;

  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"causal", int64_t{causal}}, {"window", window}};
    if (softcap > 0) attrs.set("softcap", softcap);
    if (scale > 0) attrs.set("scale", scale);
    if (dropout > 0) attrs.set("dropout", dropout).set("tensor", int64_t{77});
    return attrs;
  }
  std::vector<Tensor> inputs(DType dtype) const {
    return {Tensor::random(dtype, {batch, queries, heads * dim}, 1, 1.5),
            Tensor::random(dtype, {batch, queries, kv_heads * dim}, 2, 1.5),
            Tensor::random(dtype, {batch, queries, kv_heads * dim}, 3)};
  }
};

// The step's scalars: a seed and a step.
Tensor hyper() {
  Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
  const uint64_t seed = 0x123456789ull;
  const uint32_t step = 4;
  std::memcpy(hyper.as<float>() + 6, &seed, sizeof(seed));
  std::memcpy(hyper.as<float>() + 8, &step, sizeof(step));
  return hyper;
}

Tensor integers(std::vector<int64_t> dims, const std::vector<double>& values) {
  return Tensor(DType::i32, std::move(dims), values);
}

Tolerance forward_tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{3e-6, 2e-5} : Tolerance{4e-3, 1e-2}; }
Tolerance grad_tolerance(DType dtype) { return dtype == DType::f32 ? Tolerance{2e-5, 1e-4} : Tolerance{3e-2, 2e-2}; }

// Attention and its gradient, with o and lse from the reference.
void expect_attention(const Call& call, DType dtype, std::vector<Tensor> mask = {}, int64_t trip = 0) {
  SCOPED_TRACE(fmt::format("B{} S{} heads {}/{} d{} causal {} window {} cap {} dropout {} {}", call.batch, call.queries,
                           call.heads, call.kv_heads, call.dim, call.causal, call.window, call.softcap, call.dropout,
                           dtype_name(dtype)));
  if (call.dropout > 0) mask.insert(mask.begin(), hyper());
  std::vector<Tensor> inputs = call.inputs(dtype);
  for (const Tensor& tensor : mask) inputs.push_back(tensor);
  RunOptions plain;
  plain.trip = trip;
  expect_cuda_matches("attention", inputs, call.attrs(), forward_tolerance(dtype), plain);

  plain.only = "reference";
  const RunResult forward = run_op("attention", inputs, call.attrs(), plain);
  std::vector<Tensor> grad{
      inputs[0],          inputs[1],
      inputs[2],          forward.outputs[0],
      forward.outputs[1], Tensor::random(dtype, {call.batch, call.queries, call.heads * call.dim}, 4)};
  for (const Tensor& tensor : mask) grad.push_back(tensor);
  plain.only = {};
  expect_cuda_matches("attention_grad", grad, call.attrs(), grad_tolerance(dtype), plain);
}

TEST(CudaAttention, AgreesWithTheReferenceForEveryHeadSize) {
  for (int64_t dim : {1, 18, 40, 130}) expect_attention({1, 20, 1, 1, dim}, DType::f32);
  for (int64_t dim : {8, 18, 64, 96}) expect_attention({1, 20, 1, 1, dim}, DType::bf16);
  expect_attention({1, 100, 1, 1, 128}, DType::bf16);
}

TEST(CudaAttention, ShortAndLongRowsCausalOrNot) {
  for (bool causal : {true, false}) {
    for (int64_t queries : {1, 64, 150}) expect_attention({1, queries, 1, 1, 8, causal}, DType::f32);
    for (int64_t queries : {3, 65}) expect_attention({1, queries, 1, 1, 64, causal}, DType::bf16);
  }
}

// headroom's tensor-core kernels support bf16 heads of 64, 96 and 128.
TEST(CudaAttention, ChoosesTensorCores) {
  for (int64_t dim : {32, 64, 96, 128, 256}) {
    const Call call{1, 2, 1, 1, dim};
    const bool taken = dim == 64 || dim == 96 || dim == 128;
    Attrs own = call.attrs();
    own.set("kernels", std::string(kOwnKernels));
    EXPECT_EQ(run_cuda_op("attention", call.inputs(DType::bf16), own).implementation, taken ? "mma" : "plain");
    EXPECT_EQ(run_cuda_op("attention", call.inputs(DType::f32), own).implementation, "plain");
  }
}

TEST(CudaAttention, GroupedHeadsAndBatches) {
  expect_attention({2, 9, 4, 2, 8}, DType::f32);
  expect_attention({1, 70, 3, 1, 64, false}, DType::bf16);
}

TEST(CudaAttention, WindowsCapsAndScales) {
  for (int64_t window : {1, 5, 64, 1000}) expect_attention({1, 140, 1, 1, 8, true, window}, DType::f32);
  expect_attention({1, 140, 1, 1, 64, true, 30}, DType::bf16);
  expect_attention({1, 70, 1, 1, 16, true, 0, 3.0}, DType::f32);
  expect_attention({1, 70, 1, 1, 64, false, 0, 2.0, 0.5}, DType::bf16);
}

TEST(CudaAttention, PaddedKeys) {
  for (bool causal : {true, false}) {
    expect_attention({4, 70, 1, 1, 8, causal}, DType::f32, {integers({4}, {70, 65, 3, 0})});
    expect_attention({2, 70, 1, 1, 64, causal}, DType::bf16, {integers({2}, {66, 5})});
  }
}

TEST(CudaAttention, PackedSegments) {
  std::vector<double> starts;
  for (int row = 0; row < 2; ++row)
    for (int query = 0; query < 150; ++query)
      starts.push_back(row == 0 ? (query < 20 ? 0 : query < 129 ? 20 : 129) : query / 7 * 7);
  expect_attention({2, 150, 1, 1, 8}, DType::f32, {integers({2, 150}, starts)});
  expect_attention({2, 150, 1, 1, 8, true, 9}, DType::f32, {integers({2, 150}, starts)});
  expect_attention({2, 150, 1, 1, 64}, DType::bf16, {integers({2, 150}, starts)});
}

// The same masks as on the CPU, in any micro-batch; windows may begin at odd keys.
TEST(CudaAttention, DropsWhatTheCpuDrops) {
  for (int64_t window : {0, 6, 33}) {
    expect_attention({2, 140, 2, 1, 8, true, window, 0, 0, 0.3}, DType::f32, {}, 1);
    expect_attention({1, 140, 1, 1, 64, true, window, 0, 0, 0.3}, DType::bf16);
  }
  expect_attention({1, 20, 2, 1, 130, true, 0, 0, 0, 0.5}, DType::f32);
  expect_attention({1, 70, 1, 1, 16, true, 0, 3.0, 0, 0.1}, DType::f32);
  for (int64_t dim : {64, 96, 128}) expect_attention({2, 70, 2, 1, dim, false, 0, 0, 0, 0.1}, DType::bf16, {}, 2);
  expect_attention({1, 20, 1, 1, 64, true, 0, 2.0, 0, 0.1}, DType::bf16);
  expect_attention({3, 70, 1, 1, 64, false, 0, 0, 0, 0.1}, DType::bf16, {integers({3}, {66, 5, 70})});
  expect_attention({3, 70, 1, 1, 8, false, 0, 0, 0, 0.1}, DType::f32, {integers({3}, {66, 5, 70})});
}

TEST(CudaAttention, DropsOnTensorCores) {
  Call call{1, 2, 1, 1, 64};
  call.dropout = 0.1;
  std::vector<Tensor> inputs = call.inputs(DType::bf16);
  inputs.push_back(hyper());
  EXPECT_EQ(run_cuda_op("attention", inputs, call.attrs()).implementation, "mma");
  call.softcap = 2;
  EXPECT_EQ(run_cuda_op("attention", inputs, call.attrs()).implementation, "plain");
}

// With a window and padding, late queries see no keys: the output is zero and no gradient gets a contribution.
TEST(CudaAttention, QueriesWithoutKeys) {
  const Call call{1, 20, 1, 1, 8, true, 4};
  std::vector<Tensor> inputs = call.inputs(DType::f32);
  inputs.push_back(integers({1}, {6}));
  const RunResult forward = run_cuda_op("attention", inputs, call.attrs());
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(forward.outputs[0].at(15 * 8 + i), 0.0);
  EXPECT_EQ(forward.outputs[1].at(15), -INFINITY);
  const RunResult grad = run_cuda_op("attention_grad",
                                     {inputs[0], inputs[1], inputs[2], forward.outputs[0], forward.outputs[1],
                                      Tensor::random(DType::f32, {1, 20, 8}, 4), inputs[3]},
                                     call.attrs());
  for (const Tensor& tensor : grad.outputs)
    for (int64_t i = 0; i < tensor.count(); ++i) ASSERT_TRUE(std::isfinite(tensor.at(i)));
  for (int64_t i = 6 * 8; i < 20 * 8; ++i) EXPECT_EQ(grad.outputs[1].at(i), 0.0);
  for (int64_t i = 15 * 8; i < 16 * 8; ++i) EXPECT_EQ(grad.outputs[0].at(i), 0.0);
}

// Unused rows of the cache are NaN.
std::vector<Tensor> cached_inputs(const Call& call, DType q, DType kv, int64_t held, int64_t offset) {
  std::vector<Tensor> inputs{Tensor::random(q, {call.batch, call.queries, call.heads * call.dim}, 1, 1.5)};
  for (uint64_t seed : {2, 3}) {
    Tensor cache = Tensor::random(kv, {call.batch, held, call.kv_heads * call.dim}, seed, 1.5);
    for (int64_t row = 0; row < call.batch; ++row)
      for (int64_t i = (row * held + std::max<int64_t>(0, offset) + call.queries) * call.kv_heads * call.dim;
           i < (row + 1) * held * call.kv_heads * call.dim; ++i)
        cache.set(i, NAN);
    inputs.push_back(cache);
  }
  inputs.push_back(integers({1}, {static_cast<double>(offset)}));
  return inputs;
}

TEST(CudaAttention, ReadsACache) {
  for (DType q : kFloats)
    for (DType kv : floats_with(q))
      for (int64_t queries : {1, 4}) {
        SCOPED_TRACE(fmt::format("{} queries, {} and {}", queries, dtype_name(q), dtype_name(kv)));
        const Call call{2, queries, 2, 1, 24};
        expect_cuda_matches("attention_cached", cached_inputs(call, q, kv, 150, 130), call.attrs(),
                            forward_tolerance(q));
      }
  const Call call{1, 70, 1, 1, 64};
  for (int64_t offset : {0, 37, 130})
    expect_cuda_matches("attention_cached", cached_inputs(call, DType::bf16, DType::bf16, 200, offset), call.attrs(),
                        forward_tolerance(DType::bf16));
}

// One implementation against the reference.
void expect_decoded(const Call& call, DType dtype, int64_t held, int64_t offset) {
  SCOPED_TRACE(fmt::format("{}/{} heads of {}, window {}", call.heads, call.kv_heads, call.dim, call.window));
  const std::vector<Tensor> inputs = cached_inputs(call, dtype, dtype, held, offset);
  RunOptions only;
  only.only = "reference";
  const RunResult expected = run_op("attention_cached", inputs, call.attrs(), only);
  only.only = "decode";
  const Tolerance tolerance = forward_tolerance(dtype);
  expect_close(run_cuda_op("attention_cached", inputs, call.attrs(), only).outputs[0], expected.outputs[0],
               tolerance.absolute, tolerance.relative);
}

TEST(CudaAttention, DecodesEveryGroupHeadSizeAndMask) {
  for (DType dtype : kFloats) {
    for (int64_t dim : {1, 18, 64, 128, 260}) expect_decoded({1, 1, 3, 1, dim}, dtype, 140, 130);
    for (int64_t heads : {1, 9}) expect_decoded({1, 1, heads, 1, 64}, dtype, 140, 130);
  }
  for (int64_t window : {1, 20, 128, 300}) expect_decoded({2, 1, 4, 2, 16, true, window, 4.0}, DType::f32, 400, 299);
  const Call large{1, 1, 1, 1, 520};
  expect_cuda_matches("attention_cached", cached_inputs(large, DType::f32, DType::f32, 3, 2), large.attrs(),
                      forward_tolerance(DType::f32));
}

// Offsets are clamped to the cache.
TEST(CudaAttention, OffsetsOutsideTheCache) {
  const Call call{1, 1, 2, 1, 16};
  for (int64_t offset : {-5, 9, 1000}) {
    std::vector<Tensor> inputs = cached_inputs(call, DType::f32, DType::f32, 10, 9);
    inputs[3].set(0, static_cast<double>(offset));
    expect_cuda_matches("attention_cached", inputs, call.attrs(), forward_tolerance(DType::f32));
  }
}

TEST(CudaAttention, AppendsRowsToACache) {
  for (DType k : kFloats)
    for (DType cache : floats_with(k))
      for (int64_t width : {8, 13})
        for (int64_t offset : {-2, 0, 5, 8, 12})
          expect_cuda_matches("kv_append",
                              {Tensor::random(k, {3, 4, width}, 1), Tensor::random(cache, {3, 10, width}, 2),
                               integers({1}, {static_cast<double>(offset)})},
                              {}, {0, 0});
}

}  // namespace
}  // namespace headroom::attention_on_cuda
