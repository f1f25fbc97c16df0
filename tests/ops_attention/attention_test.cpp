// Forward attention and its gradient: every implementation against the formulas in double.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "naive_attention.h"
#include "ops/attention/scratch.h"

namespace headroom::op_test {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all;
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (int64_t queries : {1, 5, 63, 64, 65, 200}) all.push_back({2, queries, 3, 1, 16, true, 0, 0, dtype});
    for (int64_t dim : {8, 20, 64, 80, 128}) all.push_back({1, 150, 4, 2, dim, true, 0, 0, dtype});
    for (int64_t kv_heads : {12, 4, 3}) all.push_back({1, 97, 12, kv_heads, 64, true, 0, 0, dtype});
    for (int64_t window : {1, 7, 64, 100, 500}) all.push_back({1, 300, 2, 1, 32, true, window, 0, dtype});
    for (int64_t queries : {1, 33, 129, 260}) all.push_back({1, queries, 2, 2, 64, false, 0, 0, dtype});
    all.push_back({1, 70, 2, 1, 256, true, 0, 0, dtype});
    all.push_back({1, 40, 2, 1, 264, true, 0, 0, dtype});
    all.push_back({1, 130, 11, 1, 16, true, 0, 0.5, dtype});
    for (double softcap : {0.5, 4.0, 50.0}) all.push_back({2, 150, 4, 2, 32, true, 0, 0, dtype, softcap});
    all.push_back({1, 97, 3, 1, 256, true, 40, 0.3, dtype, 2.0});
    all.push_back({1, 40, 2, 1, 264, true, 0, 0, dtype, 2.0});
    for (double dropout : {0.1, 0.5, 0.9}) {
      all.push_back({2, 150, 4, 2, 64, true, 0, 0, dtype, 0, dropout});
      all.push_back({1, 61, 2, 2, 20, false, 0, 0, dtype, 0, dropout});
    }
    all.push_back({1, 700, 3, 1, 32, false, 0, 0, dtype, 0, 0.1});
    all.push_back({1, 300, 3, 1, 32, true, 70, 0, dtype, 2.0, 0.3});
    all.push_back({1, 40, 2, 1, 264, true, 0, 0, dtype, 0, 0.3});
  }
  return all;
}

struct Tolerance {
  double element;   // tolerance of o and lse
  double relative;  // tolerance of the gradients, by norm
};
Tolerance tolerance(const Case& c) {
  if (c.dtype == DType::f16) return {1.25e-3, 1e-3};
  return c.dtype == DType::f32 ? Tolerance{3e-6, 3e-6} : Tolerance{1e-2, 8e-3};
}

void expect_forward(const Case& c, const std::string& implementation) {
  SCOPED_TRACE(c.text() + " " + implementation);
  const Inputs in = random_inputs(c);
  const NaiveForward expected = naive_forward(c, values_of(in.q), values_of(in.k), values_of(in.v));
  const RunResult result = run_op("attention", c.inputs({in.q, in.k, in.v}), c.attrs(), {implementation});
  ASSERT_EQ(result.outputs.size(), 2u);
  const Tolerance limit = tolerance(c);
  expect_close(result.outputs[0], Tensor(DType::f64, in.q.type().dims, expected.o), limit.element, limit.element);
  expect_close(result.outputs[1], Tensor(DType::f64, {c.batch, c.heads, c.queries}, expected.lse), 1e-5, 1e-5);
}

std::vector<Tensor> grad_inputs(const Case& c, const Inputs& in) {
  const RunResult forward = run_op("attention", c.inputs({in.q, in.k, in.v}), c.attrs());
  return c.inputs({in.q, in.k, in.v, forward.outputs[0], forward.outputs[1], in.grad_o});
}

void expect_grad(const Case& c, const std::string& implementation) {
  SCOPED_TRACE(c.text() + " " + implementation);
  const Inputs in = random_inputs(c);
  const NaiveGrad expected = naive_grad(c, values_of(in.q), values_of(in.k), values_of(in.v), values_of(in.grad_o));
  const RunResult result = run_op("attention_grad", grad_inputs(c, in), c.attrs(), {implementation});
  ASSERT_EQ(result.outputs.size(), 3u);
  const double limit = tolerance(c).relative;
  EXPECT_LT(relative_distance(result.outputs[2], expected.dv), limit);
  if (c.queries == 1 || c.window == 1) return;  // with one visible key, dq and dk are only rounding errors
  EXPECT_LT(relative_distance(result.outputs[0], expected.dq), limit);
  EXPECT_LT(relative_distance(result.outputs[1], expected.dk), limit);
}

TEST(Attention, EveryImplementationFollowsTheFormula) {
  for (const Case& c : cases()) {
    const Inputs in = random_inputs(c);
    for (const std::string& implementation : implementations("attention", c.inputs({in.q, in.k, in.v}), c.attrs()))
      expect_forward(c, implementation);
  }
}

TEST(AttentionGrad, EveryImplementationFollowsTheFormula) {
  for (const Case& c : cases())
    for (const std::string& implementation :
         implementations("attention_grad", grad_inputs(c, random_inputs(c)), c.attrs()))
      expect_grad(c, implementation);
}

TEST(AttentionGrad, TilesInThreePartsAreAsExactAsVectors) {
  const Case c{2, 300, 4, 2, 64};
  const Inputs in = random_inputs(c);
  const std::vector<std::string> known = implementations("attention", c.inputs({in.q, in.k, in.v}), c.attrs());
  if (std::find(known.begin(), known.end(), "amx_exact") == known.end()) GTEST_SKIP() << "the machine has no AMX";
  const Values q = values_of(in.q), k = values_of(in.k), v = values_of(in.v);
  const Values o = naive_forward(c, q, k, v).o;
  const NaiveGrad grad = naive_grad(c, q, k, v, values_of(in.grad_o));
  const auto errors = [&](const char* implementation) {
    const RunOptions options{implementation};
    const RunResult forward = run_op("attention", c.inputs({in.q, in.k, in.v}), c.attrs(), options);
    const RunResult backward = run_op("attention_grad", grad_inputs(c, in), c.attrs(), options);
    return std::array{relative_distance(forward.outputs[0], o), relative_distance(backward.outputs[0], grad.dq),
                      relative_distance(backward.outputs[1], grad.dk), relative_distance(backward.outputs[2], grad.dv)};
  };
  const auto tiles = errors("amx_exact"), vectors = errors("simd");
  for (size_t i = 0; i < tiles.size(); ++i) EXPECT_LT(tiles[i], 1.2 * vectors[i]) << i;
}

TEST(AttentionGrad, TheFormulaIsTheDerivative) {
  for (const Case& c :
       {Case{1, 9, 4, 2, 8}, Case{2, 6, 3, 1, 8, true, 3, 0.7}, Case{1, 5, 2, 2, 8, false},
        Case{1, 9, 4, 2, 8, true, 4, 0.7, DType::f32, 1.5}, Case{2, 9, 4, 2, 8, true, 0, 0.7, DType::f32, 0, 0.4},
        Case{1, 9, 4, 2, 8, false, 0, 0.7, DType::f32, 1.5, 0.2}}) {
    const Inputs in = random_inputs(c);
    std::vector<Values> inputs{values_of(in.q), values_of(in.k), values_of(in.v)};
    const Values grad_o = values_of(in.grad_o);
    const NaiveGrad grad = naive_grad(c, inputs[0], inputs[1], inputs[2], grad_o);
    const auto loss = [&] {
      const NaiveForward forward = naive_forward(c, inputs[0], inputs[1], inputs[2]);
      double sum = 0;
      for (size_t i = 0; i < grad_o.size(); ++i) sum += forward.o[i] * grad_o[i];
      return sum;
    };
    const Values* analytic[] = {&grad.dq, &grad.dk, &grad.dv};
    for (size_t input = 0; input < 3; ++input)
      for (size_t i = 0; i < inputs[input].size(); ++i) {
        const double held = inputs[input][i], step = 1e-5;
        inputs[input][i] = held + step;
        const double above = loss();
        inputs[input][i] = held - step;
        const double below = loss();
        inputs[input][i] = held;
        ASSERT_NEAR((above - below) / (2 * step), (*analytic[input])[i], 1e-7) << c.text() << " input " << input;
      }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Case c{1, 40, 1, 1, 16, true, 0, 50.0};
  for (const char* implementation : {"simd", "reference"}) {
    const Inputs in = random_inputs(c);
    if (!accepts("attention", {in.q, in.k, in.v}, c.attrs(), implementation)) continue;
    const NaiveForward expected = naive_forward(c, values_of(in.q), values_of(in.k), values_of(in.v));
    const RunResult result = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
    expect_close(result.outputs[0], Tensor(DType::f64, in.q.type().dims, expected.o), 2e-3, 2e-3);
  }
}

// Scores that differ by far more than a numerator may grow, over several steps of keys.
TEST(Attention, SharpScoresFollowTheFormula) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (const Case& c : {Case{1, 700, 2, 1, 16, true, 0, 30.0, dtype}, Case{1, 700, 1, 1, 16, true, 90, 30.0, dtype},
                          Case{1, 600, 1, 1, 32, false, 0, 30.0, dtype}}) {
      const Inputs in = random_inputs(c);
      const NaiveForward expected = naive_forward(c, values_of(in.q), values_of(in.k), values_of(in.v));
      for (const std::string& implementation : implementations("attention", {in.q, in.k, in.v}, c.attrs())) {
        SCOPED_TRACE(c.text() + " " + implementation);
        const RunResult result = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
        expect_close(result.outputs[0], Tensor(DType::f64, in.q.type().dims, expected.o), 1e-2, 1e-2);
        expect_close(result.outputs[1], Tensor(DType::f64, {c.batch, c.heads, c.queries}, expected.lse), 1e-4, 1e-5);
      }
    }
}

TEST(Attention, NanInOneKeyReachesTheQueriesThatSeeIt) {
  Case c{1, 100, 2, 1, 16};
  for (DType dtype : {DType::f32, DType::bf16}) {
    c.dtype = dtype;
    Inputs in = random_inputs(c);
    in.k.set(50 * 16 + 3, NAN);
    for (const std::string& implementation : implementations("attention", {in.q, in.k, in.v}, c.attrs())) {
      const RunResult result = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
      for (int64_t query = 50; query < 100; ++query)
        EXPECT_TRUE(std::isnan(result.outputs[0].at(query * 32))) << implementation << " query " << query;
    }
  }
}

// The Highway code for each target of this machine and build, AVX2 included.
TEST(Attention, EveryTargetFollowsTheFormula) {
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {HWY_AVX3, HWY_AVX2, HWY_NEON}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    for (DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const Case& c :
           {Case{1, 150, 3, 1, 64, true, 0, 0, dtype}, Case{1, 70, 2, 2, 20, true, 30, 0, dtype},
            Case{1, 70, 2, 2, 20, true, 30, 0, dtype, 1.5}, Case{1, 70, 2, 2, 20, true, 30, 0, dtype, 0, 0.3}}) {
        expect_forward(c, "simd");
        expect_grad(c, "simd");
      }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Attention, RepeatedRunsGiveTheSameBits) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Case c{2, 130, 6, 2, 64, true, 0, 0, dtype};
    const Inputs in = random_inputs(c);
    const std::vector<Tensor> inputs = grad_inputs(c, in);
    for (const std::string& implementation : implementations("attention_grad", inputs, c.attrs())) {
      const RunResult forward = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
      const RunResult grad = run_op("attention_grad", inputs, c.attrs(), {implementation});
      for (int repeat = 0; repeat < 3; ++repeat) {
        const RunResult again = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
        for (size_t i = 0; i < 2; ++i) expect_same_bytes(again.outputs[i], forward.outputs[i]);
        const RunResult grad_again = run_op("attention_grad", inputs, c.attrs(), {implementation});
        for (size_t i = 0; i < 3; ++i) expect_same_bytes(grad_again.outputs[i], grad.outputs[i]);
      }
    }
  }
}

// Row `row` of a batch as a separate batch.
Tensor row_of(const Tensor& tensor, int64_t row) {
  std::vector<int64_t> dims = tensor.type().dims;
  const int64_t bytes = tensor.bytes() / dims[0];
  dims[0] = 1;
  Tensor single(tensor.type().dtype, dims);
  std::memcpy(single.as<std::byte>(), tensor.as<std::byte>() + row * bytes, static_cast<size_t>(bytes));
  return single;
}

std::vector<Tensor> rows_of(const std::vector<Tensor>& tensors, int64_t row) {
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) rows.push_back(row_of(tensor, row));
  return rows;
}

TEST(Attention, RowOfABatchIsTheRowAlone) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const Case& c : {Case{4, 90, 9, 3, 64, true, 0, 0, dtype}, Case{4, 50, 4, 4, 16, true, 0, 0, dtype}}) {
      const Inputs in = random_inputs(c);
      const std::vector<Tensor> inputs = grad_inputs(c, in);
      for (const std::string& implementation : implementations("attention_grad", inputs, c.attrs())) {
        SCOPED_TRACE(c.text() + " " + implementation);
        const RunResult forward = run_op("attention", {in.q, in.k, in.v}, c.attrs(), {implementation});
        const RunResult grad = run_op("attention_grad", inputs, c.attrs(), {implementation});
        for (int64_t row = 0; row < c.batch; ++row) {
          const std::vector<Tensor> single = rows_of(inputs, row);
          const RunResult alone = run_op("attention", {single[0], single[1], single[2]}, c.attrs(), {implementation});
          for (size_t i = 0; i < 2; ++i) expect_same_bytes(alone.outputs[i], row_of(forward.outputs[i], row));
          const RunResult grad_alone = run_op("attention_grad", single, c.attrs(), {implementation});
          for (size_t i = 0; i < 3; ++i) expect_same_bytes(grad_alone.outputs[i], row_of(grad.outputs[i], row));
        }
      }
    }
  }
}

// The first `rows` positions of batch row `row`, as a separate batch.
Tensor prefix_of(const Tensor& tensor, int64_t row, int64_t rows) {
  const std::vector<int64_t>& dims = tensor.type().dims;
  Tensor prefix(tensor.type().dtype, {1, rows, dims[2]});
  const int64_t bytes = tensor.bytes() / dims[0];
  std::memcpy(prefix.as<std::byte>(), tensor.as<std::byte>() + row * bytes, static_cast<size_t>(prefix.bytes()));
  return prefix;
}

// Not causal, with the keys after a row's length hidden: as if the row ended there.
TEST(Attention, PaddingIsNotSeen) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Case c{4, 150, 4, 2, 32, false, 0, 0, dtype};
    const std::vector<int64_t> lengths{150, 1, 33, 128};
    Inputs in = random_inputs(c);
    for (int64_t row = 0; row < c.batch; ++row)  // padding contributes no gradient
      for (int64_t i = lengths[static_cast<size_t>(row)] * 128; i < 150 * 128; ++i)
        in.grad_o.set(row * 150 * 128 + i, 0);
    const Tensor limits(DType::i32, {4}, {150, 0, 33, 128});  // an empty row counts as one of length one
    const std::vector<Tensor> inputs{in.q, in.k, in.v, limits};
    const double limit = dtype == DType::f32 ? 5e-6 : 2e-2;
    for (const std::string& implementation : implementations("attention", inputs, c.attrs())) {
      SCOPED_TRACE(implementation + " " + std::string(dtype_name(dtype)));
      const RunResult forward = run_op("attention", inputs, c.attrs(), {implementation});
      const std::vector<Tensor> grad_inputs{in.q,      in.k,  in.v, forward.outputs[0], forward.outputs[1],
                                            in.grad_o, limits};
      const RunResult grad = run_op("attention_grad", grad_inputs, c.attrs(), {implementation});
      for (int64_t row = 0; row < c.batch; ++row) {
        Case alone = c;
        alone.batch = 1;
        alone.queries = lengths[static_cast<size_t>(row)];
        const auto part = [&](const Tensor& tensor) { return prefix_of(tensor, row, alone.queries); };
        const Values q = values_of(part(in.q)), k = values_of(part(in.k)), v = values_of(part(in.v));
        const NaiveForward expected = naive_forward(alone, q, k, v);
        EXPECT_LT(relative_distance(part(forward.outputs[0]), expected.o), limit);
        const NaiveGrad wanted = naive_grad(alone, q, k, v, values_of(part(in.grad_o)));
        EXPECT_LT(relative_distance(part(grad.outputs[2]), wanted.dv), limit);
        if (alone.queries > 1) {  // with one visible key, dq and dk are only rounding errors
          EXPECT_LT(relative_distance(part(grad.outputs[0]), wanted.dq), limit);
          EXPECT_LT(relative_distance(part(grad.outputs[1]), wanted.dk), limit);
        }
        for (int64_t i = (row * 150 + alone.queries) * 64; i < (row + 1) * 150 * 64; ++i) {
          ASSERT_EQ(grad.outputs[1].at(i), 0) << row;
          ASSERT_EQ(grad.outputs[2].at(i), 0) << row;
        }
      }
    }
  }
}

TEST(Attention, AnyTeamGivesTheRightGradient) {
  const int held = threads();
  for (int team : {1, 3, 4}) {
    set_threads(team);
    for (DType dtype : {DType::f32, DType::bf16}) {
      expect_forward({1, 200, 6, 3, 32, true, 0, 0, dtype}, "simd");
      expect_grad({1, 200, 6, 3, 32, true, 0, 0, dtype}, "simd");
      expect_grad({1, 20, 2, 2, 32, true, 0, 0, dtype}, "");
      expect_grad({2, 400, 2, 1, 64, true, 0, 0, dtype}, "");
    }
  }
  set_threads(held);
}

KernelSpec spec_for(std::string_view op, int64_t queries, int64_t dim, DType dtype, const DeviceFacts& facts) {
  KernelSpec spec{op, Attrs{{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}}, {}, {}, 0};
  const ConcreteType q{dtype, {1, queries, 4 * dim}, {}}, k{dtype, {1, queries, 2 * dim}, {}};
  spec.inputs = {q, k, k, q, ConcreteType{DType::f32, {1, 4, queries}, {}}, q};
  spec.scratch_bytes = scratch_bytes(find_op(op), spec.call(), facts);
  return spec;
}

TEST(Attention, ForwardScratchDoesNotGrowWithTheSequence) {
  for (const InstructionSet set : kInstructionSets) {
    DeviceFacts facts;
    facts.threads = 2;
    facts.capabilities = capabilities_of(set);
    const int64_t small = spec_for("attention", 512, 64, DType::bf16, facts).scratch_bytes;
    EXPECT_EQ(spec_for("attention", 32768, 64, DType::bf16, facts).scratch_bytes, small);
    EXPECT_LE(small, 2 * 512 * 1024);
    const int64_t grad = spec_for("attention_grad", 32768, 64, DType::bf16, facts).scratch_bytes;
    EXPECT_LE(grad, 2 * (512 * 1024 + 32768 * 64 * (4 + 4 + 3 * 2)));
  }
}

// What only the kernels with bf16 products use is not booked for others.
TEST(Attention, Fp32ForwardScratchIsTheSameWithBf16Instructions) {
  DeviceFacts facts;
  facts.threads = 2;
  facts.capabilities = capabilities_of(InstructionSet::avx512);
  const int64_t without = spec_for("attention", 512, 64, DType::f32, facts).scratch_bytes;
  facts.capabilities = capabilities_of(InstructionSet::avx512_bf16);
  EXPECT_EQ(spec_for("attention", 512, 64, DType::f32, facts).scratch_bytes, without);
}

TEST(Attention, LongSequenceRunsInBoundedScratch) {
  const Case c{1, 32768, 1, 1, 8, true, 256, 0, DType::bf16};
  const Inputs in = random_inputs(c);
  const RunResult forward = run_op("attention", {in.q, in.k, in.v}, c.attrs());
  const RunResult grad =
      run_op("attention_grad", {in.q, in.k, in.v, forward.outputs[0], forward.outputs[1], in.grad_o}, c.attrs());
  for (const Tensor& tensor : grad.outputs)
    for (int64_t i = 0; i < tensor.count(); i += 997) ASSERT_TRUE(std::isfinite(tensor.at(i)));
}

TEST(Attention, KernelThatGetsLessScratchRefuses) {
  const DeviceFacts facts = host_facts();
  KernelSpec spec = spec_for("attention", 64, 64, DType::f32, facts);
  spec.inputs.resize(3);
  spec.outputs = {spec.inputs[0], ConcreteType{DType::f32, {1, 4, 64}, {}}};
  spec.scratch_bytes = 64 * facts.threads;
  for (const KernelCandidate& candidate : cpu_kernels().candidates("attention")) {
    if (candidate.implementation == "reference") continue;
    const KernelOffer offer = candidate.make(spec, facts);
    EXPECT_EQ(offer.kernel, nullptr);
    EXPECT_FALSE(offer.refusal.empty());
  }
}

TEST(Attention, WorkCountsVisiblePairs) {
  for (const Case& c : {Case{2, 50, 4, 2, 8}, Case{1, 50, 2, 1, 8, true, 7}, Case{1, 50, 2, 1, 8, true, 90},
                        Case{1, 50, 2, 2, 8, false}}) {
    double pairs = 0;
    for (int64_t i = 0; i < c.queries; ++i)
      for (int64_t j = 0; j < c.queries; ++j) pairs += c.sees(i, j) ? 1 : 0;
    const Inputs in = random_inputs(c);
    const KernelSpec spec = spec_of("attention", {in.q, in.k, in.v}, c.attrs(), host_facts());
    const Work work = find_op("attention").work(spec.call());
    EXPECT_EQ(work.flops, 4.0 * static_cast<double>(c.dim * c.batch * c.heads) * pairs) << c.text();
    EXPECT_EQ(work.bytes, static_cast<double>(in.q.bytes() * 2 + in.k.bytes() * 2 + c.batch * c.heads * c.queries * 4));
  }
}

TEST(Attention, ShapeRuleNamesWhatIsWrong) {
  const auto type = [](DType dtype, int64_t rows, int64_t width) {
    return Type{dtype, {Dim::of(1), Dim::of(rows), Dim::of(width)}};
  };
  const Attrs attrs{{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}};
  const Op& op = find_op("attention");
  const auto infer = [&](Type q, Type k, Type v, const Attrs& a) {
    return op.infer(std::vector<Type>{std::move(q), std::move(k), std::move(v)}, a);
  };
  const Type q = type(DType::f32, 5, 32), k = type(DType::f32, 5, 16);
  EXPECT_NO_THROW(infer(q, k, k, attrs));
  EXPECT_THROW(infer(q, q, q, attrs), InternalError);
  EXPECT_THROW(infer(q, type(DType::bf16, 5, 16), type(DType::bf16, 5, 16), attrs), InternalError);
  EXPECT_THROW(infer(q, type(DType::f32, 6, 16), type(DType::f32, 6, 16), attrs), InternalError);
  EXPECT_THROW(infer(q, k, type(DType::f32, 5, 8), attrs), InternalError);
  EXPECT_THROW(infer(q, k, k, {{"heads", int64_t{4}}, {"kv_heads", int64_t{3}}}), InternalError);
  EXPECT_THROW(infer(q, k, k, {}), InternalError);
  EXPECT_THROW(infer(q, k, k, {{"heads", int64_t{4}}, {"kv_heads", int64_t{2}}, {"window", int64_t{-1}}}),
               InternalError);
}

}  // namespace
}  // namespace headroom::op_test
