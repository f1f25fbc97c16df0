// Attention within the segments of a packed sequence: each as if it were alone, forward and backward.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "naive_attention.h"

namespace headroom::op_test {
namespace {

// Positions [begin, begin + count) of batch row `row`, alone.
Tensor slice_of(const Tensor& tensor, int64_t row, int64_t begin, int64_t count) {
  const std::vector<int64_t>& dims = tensor.type().dims;
  Tensor slice(tensor.type().dtype, {1, count, dims[2]});
  const int64_t bytes = tensor.bytes() / dims[0] / dims[1];
  std::memcpy(slice.as<std::byte>(), tensor.as<std::byte>() + (row * dims[1] + begin) * bytes,
              static_cast<size_t>(slice.bytes()));
  return slice;
}

// Lengths of the segments of each batch row; they fill it.
using Segments = std::vector<std::vector<int64_t>>;

Tensor starts_of(const Segments& segments, int64_t queries) {
  std::vector<double> starts;
  for (const std::vector<int64_t>& row : segments) {
    int64_t begin = 0;
    for (int64_t length : row) {
      starts.insert(starts.end(), static_cast<size_t>(length), static_cast<double>(begin));
      begin += length;
    }
    EXPECT_EQ(begin, queries);
  }
  return Tensor(DType::i32, {static_cast<int64_t>(segments.size()), queries}, starts);
}

struct Outcome {
  RunResult forward, grad;
};

Outcome run(const Case& c, const Inputs& in, const Tensor& starts, const std::string& implementation) {
  RunResult forward = run_op("attention", {in.q, in.k, in.v, starts}, c.attrs(), {implementation});
  RunResult grad =
      run_op("attention_grad", {in.q, in.k, in.v, forward.outputs[0], forward.outputs[1], in.grad_o, starts}, c.attrs(),
             {implementation});
  return {std::move(forward), std::move(grad)};
}

// The implementations `among`, or all that accept the call, against each segment alone.
void expect_segments_alone(const Case& c, const Segments& segments, std::vector<std::string> among = {}) {
  SCOPED_TRACE(c.text());
  const Inputs in = random_inputs(c);
  const Tensor starts = starts_of(segments, c.queries);
  if (among.empty()) among = implementations("attention", {in.q, in.k, in.v, starts}, c.attrs());
  std::vector<Outcome> found;
  for (const std::string& implementation : among) found.push_back(run(c, in, starts, implementation));
  const double limit = c.dtype == DType::f32 ? 5e-6 : 2e-2;
  for (size_t row = 0; row < segments.size(); ++row) {
    int64_t begin = 0;
    for (int64_t length : segments[row]) {
      Case alone = c;
      alone.batch = 1;
      alone.queries = length;
      const auto part = [&](const Tensor& t) { return slice_of(t, static_cast<int64_t>(row), begin, length); };
      const Values q = values_of(part(in.q)), k = values_of(part(in.k)), v = values_of(part(in.v));
      const Values expected = naive_forward(alone, q, k, v).o;
      const NaiveGrad wanted = naive_grad(alone, q, k, v, values_of(part(in.grad_o)));
      for (size_t i = 0; i < among.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, row {}, segment from {} of {}", among[i], row, begin, length));
        const std::vector<Tensor>& grad = found[i].grad.outputs;
        EXPECT_LT(relative_distance(part(found[i].forward.outputs[0]), expected), limit);
        EXPECT_LT(relative_distance(part(grad[2]), wanted.dv), limit);
        if (length == 1 || c.window == 1) continue;  // with one visible key, dq and dk are only rounding errors
        EXPECT_LT(relative_distance(part(grad[0]), wanted.dq), limit);
        EXPECT_LT(relative_distance(part(grad[1]), wanted.dk), limit);
      }
      begin += length;
    }
  }
}

// Short and long segments, with boundaries inside and between strips of 32, tiles of 64 and of 128.
const Segments kSegments{{1, 3, 28, 32, 64, 60, 1, 1, 90, 20}, {150, 150}, {5, 123, 129, 43}};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (DType dtype : {DType::f32, DType::bf16}) {
    all.push_back({3, 300, 4, 2, 32, true, 0, 0, dtype});
    all.push_back({3, 300, 3, 1, 20, true, 0, 0, dtype});
    for (int64_t window : {1, 40, 100, 400}) all.push_back({3, 300, 2, 1, 32, true, window, 0, dtype});
    all.push_back({3, 300, 4, 4, 64, true, 50, 0.3, dtype, 2.0});
    all.push_back({3, 300, 2, 1, 264, true, 0, 0, dtype});  // only for the reference
  }
  return all;
}

TEST(Segments, AreAsIfAloneInEveryImplementation) {
  for (const Case& c : cases()) expect_segments_alone(c, kSegments);
}

TEST(Segments, AreAsIfAloneOnEveryTargetAndTeam) {
  const int64_t supported = hwy::SupportedTargets();
  const int held = threads();
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_NEON}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    for (int team : {1, 3}) {
      set_threads(team);
      expect_segments_alone({3, 300, 2, 1, 32, true, 40, 0, DType::f32}, kSegments, {"simd"});
      expect_segments_alone({3, 300, 2, 1, 32, true, 0, 0, DType::bf16}, kSegments, {"simd"});
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  set_threads(held);
}

// One segment per row: the same bits as without segments.
TEST(Segments, OneIsTheWholeRow) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Case c{2, 200, 4, 2, 32, true, 0, 0, dtype};
    const Inputs in = random_inputs(c);
    const Tensor starts(DType::i32, {2, 200});
    for (const std::string& implementation : implementations("attention", {in.q, in.k, in.v}, c.attrs())) {
      const Outcome found = run(c, in, starts, implementation);
      const RunResult forward = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
      const RunResult grad =
          run_op("attention_grad", {in.q, in.k, in.v, forward.outputs[0], forward.outputs[1], in.grad_o}, c.attrs(),
                 {implementation});
      for (size_t i = 0; i < 2; ++i) expect_same_bytes(found.forward.outputs[i], forward.outputs[i]);
      for (size_t i = 0; i < 3; ++i) expect_same_bytes(found.grad.outputs[i], grad.outputs[i]);
    }
  }
}

// Whatever the host passes, no key outside the causal range is read.
TEST(Segments, StartsOutsideTheRowAreHeldInside) {
  const Case c{1, 100, 2, 1, 16};
  const Inputs in = random_inputs(c);
  std::vector<double> wild(100);
  for (size_t i = 0; i < wild.size(); ++i) wild[i] = i < 50 ? -7 : 1000;
  for (const std::string& implementation : implementations("attention", {in.q, in.k, in.v}, c.attrs())) {
    const Outcome found = run(c, in, Tensor(DType::i32, {1, 100}, wild), implementation);
    for (const Tensor& tensor : found.grad.outputs)
      for (int64_t i = 0; i < tensor.count(); ++i) ASSERT_TRUE(std::isfinite(tensor.at(i))) << implementation;
  }
}

}  // namespace
}  // namespace headroom::op_test
