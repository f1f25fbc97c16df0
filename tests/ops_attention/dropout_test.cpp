// Which probabilities attention drops: their share, independence, and that every implementation drops the same.
#include <gtest/gtest.h>

#include "base/error.h"
#include "naive_attention.h"

namespace headroom::op_test {
namespace {

// Uniform probabilities of 64 keys whose values are the rows of the identity, so that a head's o shows its mask.
struct MaskCall {
  Case c{3, 64, 5, 1, 64, false};

  explicit MaskCall(double dropout, DType dtype = DType::f32) {
    c.dropout = dropout;
    c.dtype = dtype;
  }
  std::vector<Tensor> operands() const {
    const std::vector<int64_t> dims{c.batch, c.queries, c.heads * c.dim}, kv_dims{c.batch, c.queries, c.dim};
    Tensor v = Tensor::filled(c.dtype, kv_dims, 0);
    for (int64_t i = 0; i < c.batch * c.queries; ++i) v.set(i * c.dim + i % c.dim, 1);
    return {Tensor::filled(c.dtype, dims, 0), Tensor::filled(c.dtype, kv_dims, 0), v};
  }
  // 64 o: 0 where dropped.
  Values mask(const Tensor& hyper, const RunOptions& options = {}) const {
    std::vector<Tensor> inputs = operands();
    inputs.push_back(hyper);
    Values mask = values_of(run_op("attention", inputs, c.attrs(), options).outputs[0]);
    for (double& value : mask) value *= 64;
    return mask;
  }
};

double mean_of(const Values& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(AttentionDropout, DropsItsShareAndScalesTheRest) {
  for (double rate : {0.02, 0.1, 0.5, 0.9}) {
    const MaskCall call(rate);
    const Values mask = call.mask(call.c.hyper());
    double dropped = 0;
    for (double value : mask) {
      ASSERT_TRUE(value == 0 || std::abs(value * (1 - rate) - 1) < 1e-4) << value;
      dropped += value == 0 ? 1 : 0;
    }
    const auto count = static_cast<double>(mask.size());
    EXPECT_NEAR(dropped, rate * count, 4.5 * std::sqrt(rate * (1 - rate) * count));
    EXPECT_NEAR(mean_of(mask), 1, 4.5 * std::sqrt(rate / (1 - rate) / count));
  }
}

// Neighbouring keys (with common and separate random bits), queries, heads and batch rows are dropped independently.
TEST(AttentionDropout, ScoresAreIndependent) {
  const MaskCall call(0.5);
  const Values mask = call.mask(call.c.hyper());  // [batch, query, head, key]
  const int64_t keys = 64, query = 5 * keys, row = 64 * query;
  for (int64_t distance : {int64_t{1}, int64_t{2}, int64_t{16}, keys, 2 * keys, query, 2 * query, row}) {
    double agree = 0, pairs = 0;
    for (size_t i = 0; i + static_cast<size_t>(distance) < mask.size(); i += distance == 1 ? 2 : 1, ++pairs)
      agree += (mask[i] == 0) == (mask[i + static_cast<size_t>(distance)] == 0) ? 1 : 0;
    EXPECT_NEAR(agree, 0.5 * pairs, 4.5 * 0.5 * std::sqrt(pairs)) << distance;
  }
}

TEST(AttentionDropout, EveryImplementationDropsTheSame) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const MaskCall call(0.3, dtype);
    const Values expected = MaskCall(0.3).mask(call.c.hyper(), {.only = "reference"});
    std::vector<Tensor> inputs = call.operands();
    inputs.push_back(call.c.hyper());
    for (const std::string& implementation : implementations("attention", inputs, call.c.attrs())) {
      const Values mask = call.mask(call.c.hyper(), {.only = implementation});
      for (size_t i = 0; i < mask.size(); ++i) ASSERT_EQ(mask[i] == 0, expected[i] == 0) << implementation << " " << i;
    }
  }
}

TEST(AttentionDropout, SeedStepAndPlaceChooseTheMask) {
  const MaskCall call(0.5);
  MaskCall elsewhere = call;
  elsewhere.c.tensor = 6;
  const Values mask = call.mask(call.c.hyper(42, 3));
  EXPECT_EQ(call.mask(call.c.hyper(42, 3)), mask);
  for (const Values& other :
       {call.mask(call.c.hyper(43, 3)), call.mask(call.c.hyper(42, 4)), elsewhere.mask(call.c.hyper(42, 3))}) {
    double same = 0;
    for (size_t i = 0; i < mask.size(); ++i) same += mask[i] == other[i] ? 1 : 0;
    const auto count = static_cast<double>(mask.size());
    EXPECT_NEAR(same, 0.5 * count, 4.5 * 0.5 * std::sqrt(count));
  }
}

// Rows [first, first + rows) of a batch.
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t rows) {
  std::vector<int64_t> dims = tensor.type().dims;
  const int64_t bytes = tensor.bytes() / dims[0];
  dims[0] = rows;
  Tensor part(tensor.type().dtype, dims);
  std::memcpy(part.as<std::byte>(), tensor.as<std::byte>() + first * bytes, static_cast<size_t>(rows * bytes));
  return part;
}

// A batch in two micro-batches has the masks of the whole batch, forward and backward, bitwise.
TEST(AttentionDropout, MasksDoNotDependOnTheMicroBatch) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    Case c{4, 90, 6, 3, 64, true, 0, 0, dtype, 0, 0.3};
    const Inputs in = random_inputs(c);
    const RunResult whole = run_op("attention", c.inputs({in.q, in.k, in.v}), c.attrs());
    const std::vector<Tensor> operands{in.q, in.k, in.v, whole.outputs[0], whole.outputs[1], in.grad_o};
    for (const std::string& implementation : implementations("attention_grad", c.inputs(operands), c.attrs())) {
      RunOptions options{.only = implementation};
      const RunResult forward = run_op("attention", c.inputs({in.q, in.k, in.v}), c.attrs(), options);
      const RunResult grad = run_op("attention_grad", c.inputs(operands), c.attrs(), options);
      for (int64_t trip : {0, 1}) {
        options.trip = trip;
        std::vector<Tensor> part;
        for (const Tensor& tensor : operands) part.push_back(rows_of(tensor, 2 * trip, 2));
        const RunResult half = run_op("attention", c.inputs({part[0], part[1], part[2]}), c.attrs(), options);
        for (size_t i = 0; i < 2; ++i) expect_same_bytes(half.outputs[i], rows_of(forward.outputs[i], 2 * trip, 2));
        const RunResult half_grad = run_op("attention_grad", c.inputs(part), c.attrs(), options);
        for (size_t i = 0; i < 3; ++i) expect_same_bytes(half_grad.outputs[i], rows_of(grad.outputs[i], 2 * trip, 2));
      }
    }
  }
}

TEST(AttentionDropout, RateZeroIsTheNodeWithoutIt) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Case c{2, 130, 6, 2, 64, true, 0, 0, dtype};
    const Inputs in = random_inputs(c);
    Attrs zero = c.attrs();
    zero.set("dropout", 0.0);
    const RunResult plain = run_op("attention", {in.q, in.k, in.v}, c.attrs());
    const RunResult other = run_op("attention", {in.q, in.k, in.v}, zero);
    for (size_t i = 0; i < 2; ++i) expect_same_bytes(other.outputs[i], plain.outputs[i]);
  }
}

// The sums of dk and dv over heads that share keys, with separate masks, for rows with padding or segments.
TEST(AttentionDropout, StandsBesideMasks) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (const bool causal : {false, true}) {
      Case c{2, 100, 4, 2, 32, causal, 0, 0, dtype, 0, 0.2};
      const Inputs in = random_inputs(c);
      Tensor mask(DType::i32, causal ? std::vector<int64_t>{2, 100} : std::vector<int64_t>{2});
      for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, causal ? (i % 100 >= 40 ? 40 : 0) : 70 + 30 * i);
      const std::vector<Tensor> inputs{in.q, in.k, in.v, c.hyper(), mask};
      const RunResult expected = run_op("attention", inputs, c.attrs(), {.only = "reference"});
      const std::vector<Tensor> grad_inputs{in.q,      in.k,      in.v, expected.outputs[0], expected.outputs[1],
                                            in.grad_o, c.hyper(), mask};
      const RunResult expected_grad = run_op("attention_grad", grad_inputs, c.attrs(), {.only = "reference"});
      const double limit = dtype == DType::f32 ? 5e-6 : 2e-2;
      for (const std::string& implementation : implementations("attention_grad", grad_inputs, c.attrs())) {
        SCOPED_TRACE(c.text() + " " + implementation);
        const RunResult found = run_op("attention", inputs, c.attrs(), {implementation});
        EXPECT_LT(relative_distance(found.outputs[0], values_of(expected.outputs[0])), limit);
        const RunResult grad = run_op("attention_grad", grad_inputs, c.attrs(), {implementation});
        for (size_t i = 0; i < 3; ++i)
          EXPECT_LT(relative_distance(grad.outputs[i], values_of(expected_grad.outputs[i])), limit) << i;
      }
    }
}

// Random bits count as work for each visible pair; they take no scratch.
TEST(AttentionDropout, WorkCountsTheDraws) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    Case c{2, 100, 4, 2, 64, true, 0, 0, dtype};
    const Inputs in = random_inputs(c);
    const KernelSpec without = spec_of("attention", {in.q, in.k, in.v}, c.attrs(), host_facts());
    c.dropout = 0.1;
    const KernelSpec with = spec_of("attention", c.inputs({in.q, in.k, in.v}), c.attrs(), host_facts());
    EXPECT_EQ(with.scratch_bytes, without.scratch_bytes);
    const Op& op = find_op("attention");
    const double pairs = 2 * 4 * 100 * 101 / 2, draws = op.work(with.call()).flops - op.work(without.call()).flops;
    EXPECT_EQ(draws, (dtype == DType::f32 ? 24 : 96) * pairs);
    EXPECT_EQ(op.work(with.call()).bytes - op.work(without.call()).bytes, 64);
  }
}

TEST(AttentionDropout, NeedsTheStepsScalars) {
  const Case c{1, 8, 2, 1, 8, true, 0, 0, DType::f32, 0, 0.1};
  const Inputs in = random_inputs(c);
  EXPECT_THROW(run_op("attention", {in.q, in.k, in.v}, c.attrs()), InternalError);
  Attrs certain = c.attrs();
  certain.set("dropout", 1.0);
  EXPECT_THROW(run_op("attention", c.inputs({in.q, in.k, in.v}), certain), InternalError);
}

}  // namespace
}  // namespace headroom::op_test
