#include "../cuda_blas/fake_cublaslt.h"
#include "cuda_shim/cuda_harness.h"
#include "ops/cuda/cublaslt.h"

namespace headroom::linear_cross_entropy_on_cuda {
namespace {

using namespace op_test;

struct LossCase {
  int64_t batch = 2, sequence = 4, hidden = 6, vocabulary = 37, chunk = 0;
  DType dtype = DType::f32;
  bool wide_weight = false, narrow_logits = false;
  bool out_in = true, shift = true, hits = false, bias = false, train_weight = true, train_bias = false;
  double softcap = 0;
  std::string accumulate = "carried";
  int64_t trip = 0;
};

std::ostream& operator<<(std::ostream& out, const LossCase& c) {
  return out << c.batch << "x" << c.sequence << " hidden " << c.hidden << " vocabulary " << c.vocabulary << " chunk "
             << c.chunk << " " << dtype_name(c.dtype) << " wide " << c.wide_weight << " narrow " << c.narrow_logits
             << " out_in " << c.out_in << " shift " << c.shift << " hits " << c.hits << " bias " << c.bias
             << c.train_bias << " softcap " << c.softcap << " " << c.accumulate << " " << c.trip;
}

// A third of the labels are ignored.
Tensor some_labels(const LossCase& c) {
  const Tensor noise = Tensor::random(DType::f64, {c.batch, c.sequence}, 9);
  Tensor labels(DType::i32, {c.batch, c.sequence});
  for (int64_t i = 0; i < labels.count(); ++i)
    labels.set(i, noise.at(i) > 0.33 ? -100 : std::floor((noise.at(i) + 1) / 2 * static_cast<double>(c.vocabulary)));
  return labels;
}

struct LossCall {
  std::string op;
  std::vector<Tensor> inputs;
  Attrs attrs;
};

LossCall call_of(const LossCase& c, bool gradient) {
  const std::vector<int64_t> w_dims =
      c.out_in ? std::vector<int64_t>{c.vocabulary, c.hidden} : std::vector<int64_t>{c.hidden, c.vocabulary};
  LossCall call{gradient ? "linear_cross_entropy_grad" : "linear_cross_entropy",
                {Tensor::random(c.dtype, {c.batch, c.sequence, c.hidden}, 1, 2.0),
                 Tensor::random(c.wide_weight ? DType::f32 : c.dtype, w_dims, 2), some_labels(c)},
                {{"layout", c.out_in ? "out_in" : "in_out"},
                 {"chunk", c.chunk},
                 {"accumulate", c.accumulate},
                 {"shift", int64_t{c.shift}},
                 {"hits", int64_t{c.hits}},
                 {"bias", int64_t{c.bias}},
                 {"softcap", c.softcap}}};
  const Tensor sums = Tensor::filled(DType::f64, {c.hits ? 3 : 2}, 7.0);
  if (gradient) {
    call.inputs.push_back(Tensor(DType::f32, {1}, {0.25}));
    call.inputs.push_back(sums);
    call.attrs.set("loss_accumulate", c.accumulate).set("train_weight", int64_t{c.train_weight});
    if (c.narrow_logits) call.attrs.set("logits", std::string("bf16"));
    if (c.train_weight) call.inputs.push_back(Tensor::random(DType::f32, w_dims, 3));
  } else {
    call.inputs.push_back(sums);
  }
  if (c.bias) call.inputs.push_back(Tensor::random(DType::f32, {c.vocabulary}, 4));
  if (gradient && c.train_bias) {
    call.attrs.set("train_bias", int64_t{1}).set("accumulate_bias", c.accumulate);
    call.inputs.push_back(Tensor::random(DType::f32, {c.vocabulary}, 5));
  }
  return call;
}

Tolerance tolerance_of(DType dtype) { return dtype == DType::f32 ? Tolerance{2e-5, 1e-5} : Tolerance{1e-2, 1e-2}; }

void expect_loss_matches(const LossCase& c) {
  std::ostringstream text;
  text << c;
  SCOPED_TRACE(text.str());
  RunOptions options;
  options.trip = c.trip;
  for (bool gradient : {false, true}) {
    const LossCall call = call_of(c, gradient);
    expect_cuda_matches(call.op, call.inputs, call.attrs, tolerance_of(c.dtype), options);
  }
}

class CudaLoss : public testing::Test {
 protected:
  CudaLoss() { set_threads(1); }
};

TEST_F(CudaLoss, AgreesInEveryLayoutAndChunk) {
  for (DType dtype : kFloats)
    for (bool out_in : {true, false})
      for (int64_t chunk : {0, 3, 4}) {
        LossCase c;
        c.dtype = dtype;
        c.out_in = out_in;
        c.chunk = chunk;
        expect_loss_matches(c);
        c.wide_weight = true;
        expect_loss_matches(c);
      }
}

// More rows than one block adds, in a full chunk and in the last one.
TEST_F(CudaLoss, SumsABiasOverManyRows) {
  for (DType dtype : kFloats)
    for (int64_t vocabulary : {37, 264}) {
      LossCase c;
      c.sequence = 110, c.chunk = 140, c.vocabulary = vocabulary, c.dtype = dtype;
      c.bias = c.train_bias = true;
      c.trip = 1;
      expect_loss_matches(c);
    }
}

TEST_F(CudaLoss, AgreesWithEveryOption) {
  for (int option = 0; option < 7; ++option) {
    LossCase c;
    c.chunk = 4;
    c.dtype = option % 2 == 0 ? DType::bf16 : DType::f32;
    c.shift = option != 0;
    c.hits = option == 1 || option == 2;
    c.bias = option >= 2 && option <= 4;
    c.train_bias = option >= 3 && option <= 4;
    c.train_weight = option != 4;
    c.softcap = option >= 5 || option == 2 ? 1.5 : 0;
    expect_loss_matches(c);
    c.trip = option % 2;
    if (option % 4 >= 2) c.accumulate = "always";
    expect_loss_matches(c);
  }
}

// Several iterations of each loop over a row, and lengths that are not multiples of a pack.
TEST_F(CudaLoss, AgreesForLongRows) {
  for (int64_t vocabulary : {4101, 9003})
    for (DType dtype : kFloats) {
      LossCase c;
      c.batch = 1;
      c.sequence = 2;
      c.hidden = 4;
      c.vocabulary = vocabulary;
      c.dtype = dtype;
      c.shift = false;
      c.softcap = vocabulary == 9003 ? 2 : 0;
      c.train_weight = false;
      expect_loss_matches(c);
    }
}

// Logits in bf16: their error is a fraction of a probability.
TEST_F(CudaLoss, AgreesWithNarrowLogits) {
  for (int64_t chunk : {0, 3})
    for (bool wide : {false, true}) {
      LossCase c;
      c.dtype = DType::bf16, c.narrow_logits = true, c.hidden = 16, c.chunk = chunk, c.wide_weight = wide;
      c.softcap = wide ? 1.5 : 0, c.out_in = chunk == 0;
      expect_loss_matches(c);
    }
}

// Rows that a block reads twice, one that registers hold partly, and one that they hold completely.
TEST_F(CudaLoss, AgreesForLongRowsOfNarrowLogits) {
  for (int64_t vocabulary : {4101, 8192, 25001, 32768, 33005}) {
    LossCase c;
    c.batch = 1, c.sequence = 2, c.hidden = 8, c.vocabulary = vocabulary;
    c.dtype = DType::bf16, c.narrow_logits = true, c.shift = c.train_weight = false;
    expect_loss_matches(c);
  }
}

// A call in fp64 with the same operands: the sum of the losses and dx, with bounds on the effect of narrow logits.
struct ExactLoss {
  double loss = 0, loss_bound = 0;
  std::vector<double> dx, dx_bound;
};

// Apart from its fp32 sum, the error of a logit l is at most 2^-9 |l|. A probability p then has an error of at most p
// (e^(2 m) - 1), where m is the largest error of a logit. The gradient of a logit and dx are rounded to bf16, 2^-9 of
// themselves.
ExactLoss exact_loss(const LossCase& c, const LossCall& call, double scale) {
  constexpr double kHalfBit = 1.0 / 512;
  const Tensor &x = call.inputs[0], &w = call.inputs[1];
  ExactLoss exact;
  for (int64_t row = 0; row < c.batch * c.sequence; ++row) {
    const auto target = static_cast<int64_t>(call.inputs[2].at(row));
    std::vector<double> logits(static_cast<size_t>(c.vocabulary)), dx(static_cast<size_t>(c.hidden)), bound(dx);
    double sum = 0, most = 0;
    for (int64_t j = 0; j < c.vocabulary; ++j) {
      double& logit = logits[static_cast<size_t>(j)];
      for (int64_t k = 0; k < c.hidden; ++k) logit += x.at(row * c.hidden + k) * w.at(j * c.hidden + k);
      sum += std::exp(logit), most = std::max(most, std::abs(logit));
    }
    const double off = most * (kHalfBit + 1e-5);
    for (int64_t j = 0; target >= 0 && j < c.vocabulary; ++j) {
      const double p = std::exp(logits[static_cast<size_t>(j)]) / sum, g = scale * (p - (j == target ? 1 : 0));
      const double off_g = scale * p * std::expm1(2 * off);
      for (int64_t k = 0; k < c.hidden; ++k) {
        const double weight = w.at(j * c.hidden + k);
        dx[static_cast<size_t>(k)] += g * weight;
        bound[static_cast<size_t>(k)] += std::abs(weight) * (off_g + (std::abs(g) + off_g) * kHalfBit);
      }
    }
    if (target >= 0) exact.loss += std::log(sum) - logits[static_cast<size_t>(target)], exact.loss_bound += 2 * off;
    for (size_t k = 0; k < dx.size(); ++k) bound[k] += (std::abs(dx[k]) + bound[k]) * kHalfBit;
    exact.dx.insert(exact.dx.end(), dx.begin(), dx.end());
    exact.dx_bound.insert(exact.dx_bound.end(), bound.begin(), bound.end());
  }
  return exact;
}

TEST_F(CudaLoss, NarrowLogitsStayWithinTheirBound) {
  for (int64_t hidden : {16, 128}) {
    LossCase c;
    c.batch = 1, c.sequence = 6, c.hidden = hidden, c.vocabulary = 301;
    c.dtype = DType::bf16, c.narrow_logits = true, c.shift = false, c.train_weight = false;
    const LossCall call = call_of(c, true);
    const ExactLoss exact = exact_loss(c, call, call.inputs[3].at(0));
    for (const char* implementation : {"mma", "plain"}) {
      SCOPED_TRACE(implementation);
      RunOptions options;
      options.only = implementation;
      const std::vector<Tensor> found = run_cuda_op(call.op, call.inputs, call.attrs, options).outputs;
      EXPECT_NEAR(found[1].at(0), exact.loss, exact.loss_bound);
      double worst = 0;
      for (size_t i = 0; i < exact.dx.size(); ++i) {
        const double error = std::abs(found[0].at(static_cast<int64_t>(i)) - exact.dx[i]);
        EXPECT_LE(error, exact.dx_bound[i] + 1e-6) << i;
        if (exact.dx_bound[i] > 0) worst = std::max(worst, error / exact.dx_bound[i]);
      }
      EXPECT_GT(worst, 1e-3);  // the bound is one of this error
    }
  }
}

// Outputs of the CUDA kernel for a call that the reference refuses or computes differently.
std::vector<Tensor> run_gradient(const LossCall& call) { return run_cuda_op(call.op, call.inputs, call.attrs).outputs; }

TEST_F(CudaLoss, WhatIsNotFiniteMakesTheLossNaN) {
  for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    LossCase c;
    c.shift = false;
    LossCall call = call_of(c, true);
    call.inputs[0].set(0, bad);  // of row 0, whose label counts
    call.inputs[2].set(0, 3);
    const std::vector<Tensor> outputs = run_gradient(call);
    EXPECT_TRUE(std::isnan(outputs[1].at(0))) << bad;
    EXPECT_TRUE(std::isnan(outputs[0].at(0))) << bad;
    EXPECT_FALSE(std::isnan(outputs[0].at(c.hidden))) << bad;
  }
}

TEST_F(CudaLoss, ALabelOutsideTheVocabularyMakesTheLossNaN) {
  for (int bad : {37, 1 << 30, -1}) {
    LossCase c;
    c.shift = false;
    LossCall call = call_of(c, true);
    call.inputs[2].set(0, bad);
    const std::vector<Tensor> outputs = run_gradient(call);
    EXPECT_TRUE(std::isnan(outputs[1].at(0))) << bad;
    for (int64_t i = 0; i < outputs[0].count(); ++i) EXPECT_FALSE(std::isnan(outputs[0].at(i)));
  }
}

// With a fake library that multiplies by the given descriptions.
class CudaLossByLibrary : public CudaLoss {
 protected:
  CudaLossByLibrary() { services.products = make_cublaslt(cublaslt_test::fake_api()); }

  void expect_library_matches(const LossCase& c) {
    const LossCall call = call_of(c, true);
    CudaContext context = test_context(services);
    context.facts.gemm_workspace_cap = 300;
    const KernelSpec spec = spec_of(call.op, call.inputs, call.attrs, context.facts);
    std::string chosen;
    const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, {}, &chosen);
    EXPECT_EQ(chosen, "cublaslt");
    RunOptions options;
    const std::vector<Tensor> found =
        run_call(spec, call.inputs, options, chosen, [&](const KernelCall& run) { kernel->enqueue(run, nullptr); });
    options.only = "reference";
    const std::vector<Tensor> expected = run_op(call.op, call.inputs, call.attrs, options).outputs;
    const Tolerance tolerance = tolerance_of(c.dtype);
    for (size_t i = 0; i < expected.size(); ++i)
      expect_close(found[i], expected[i], tolerance.absolute, tolerance.relative);
  }

  cublaslt_test::Fake& fake = cublaslt_test::fresh_fake();
  TestServices services;
};

TEST_F(CudaLossByLibrary, Agrees) {
  fake.known[0].workspace = 300;
  for (DType dtype : kFloats)
    for (bool out_in : {true, false})
      for (int64_t hidden : {6, 16}) {
        LossCase c;
        c.dtype = dtype;
        c.out_in = out_in;
        c.hidden = hidden;
        c.bias = out_in;
        c.chunk = 4;
        c.wide_weight = hidden == 16;
        c.narrow_logits = dtype == DType::bf16 && !c.bias;
        expect_library_matches(c);
        // Chunks of 4 rows of 6 bf16 elements start at multiples of 16 bytes.
        EXPECT_EQ(fake.alignment, 16u);
      }
  EXPECT_GT(fake.products, 0);
}

TEST_F(CudaLossByLibrary, FallsBackToOurTilesProductByProduct) {
  fake.known_count = 0;
  LossCase c;
  c.chunk = 3;
  expect_library_matches(c);
  EXPECT_EQ(fake.products, 0);
}

}  // namespace
}  // namespace headroom::linear_cross_entropy_on_cuda
