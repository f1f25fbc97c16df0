// fp8 products of linear layers: by a fake library that multiplies the codes, or by the device's.
#include <cmath>
#include <limits>

#include "../cuda_blas/fake_cublaslt.h"
#include "../ops_support/coded_tensor.h"
#include "cuda_shim/cuda_harness.h"
#include "ops/cuda/capabilities.h"
#include "ops/cuda/cublaslt.h"

namespace headroom::fp8_on_cuda {
namespace {

using namespace op_test;

struct Format {
  int mantissa_bits, bias;
  double most;
};
constexpr Format kE4m3{3, 7, 448}, kE5m2{2, 15, 57344};

// The value of a code from 0 to 127, by the format's definition.
double value_of(const Format& format, int code) {
  const int steps = 1 << format.mantissa_bits, field = code / steps, mantissa = code % steps;
  return field > 0 ? std::ldexp(steps + mantissa, field - format.bias - format.mantissa_bits)
                   : std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
}

// The finite numbers from 0 on.
std::vector<double> values_of(const Format& format) {
  std::vector<double> values;
  for (int code = 0; value_of(format, code) <= format.most && code < 128; ++code)
    values.push_back(value_of(format, code));
  return values;
}

// The nearest number of the format; for ties the one with the even code.
double nearest(const Format& format, double x) {
  const std::vector<double> values = values_of(format);
  size_t best = 0;
  for (size_t code = 1; code < values.size(); ++code) {
    const double gap = std::abs(values[code] - std::abs(x)), least = std::abs(values[best] - std::abs(x));
    if (gap < least || (gap == least && code % 2 == 0)) best = code;
  }
  return std::copysign(values[best], x);
}

// The largest power of two with which the largest finite element fits the format.
double scale_of(const Format& format, const Tensor& x) {
  double most = 0;
  for (int64_t i = 0; i < x.count(); ++i)
    if (std::isfinite(x.at(i))) most = std::max(most, std::abs(x.at(i)));
  if (most == 0) return 1;
  int exponent = 126;
  while (std::ldexp(most, exponent) > format.most) --exponent;
  return std::ldexp(1.0, exponent);
}

// In f32, rounded by hand.
Tensor rounded_to(const Format& format, const Tensor& x) {
  const double scale = scale_of(format, x);
  Tensor out(DType::f32, x.type().dims);
  for (int64_t i = 0; i < x.count(); ++i)
    out.set(i, std::isfinite(x.at(i)) ? nearest(format, x.at(i) * scale) / scale
                                      : std::numeric_limits<double>::quiet_NaN());
  return out;
}

Tensor identity(int64_t size) {
  Tensor one = Tensor::filled(DType::bf16, {size, size}, 0);
  for (int64_t i = 0; i < size; ++i) one.set(i * size + i, 1);
  return one;
}

Tensor transposed(const Tensor& x) {
  const int64_t rows = x.type().dims[0], cols = x.type().dims[1];
  Tensor out(x.type().dtype, {cols, rows});
  for (int64_t i = 0; i < rows * cols; ++i) out.set(i % cols * rows + i / cols, x.at(i));
  return out;
}

// Every number of a format, the halfway points to the next one, and the bf16 numbers on both sides of these; with both
// signs, in rows of 16. The largest is the format's.
Tensor numbers_around(const Format& format) {
  const std::vector<double> values = values_of(format);
  std::vector<double> around;
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const double middle = (values[code] + values[code + 1]) / 2;
    for (double x : {values[code], middle, middle * (1 - 1.0 / 256), middle * (1 + 1.0 / 128)})
      for (double sign : {1.0, -1.0}) around.push_back(sign * x);
  }
  around.push_back(format.most);
  around.resize((around.size() + 15) / 16 * 16, 0);
  return Tensor(DType::bf16, {static_cast<int64_t>(around.size()) / 16, 16}, around);
}

// Padded to a multiple of 16 rows.
Tensor padded(const Tensor& x) {
  const int64_t rows = (x.type().dims[0] + 15) / 16 * 16, cols = x.type().dims[1];
  Tensor out = Tensor::filled(DType::bf16, {rows, cols}, 0);
  for (int64_t i = 0; i < x.count(); ++i) out.set(i, x.at(i));
  return out;
}

Tensor times(const Tensor& x, double factor) {
  Tensor out = x;
  for (int64_t i = 0; i < x.count(); ++i) out.set(i, x.at(i) * factor);
  return out;
}

class CudaFp8 : public testing::Test {
 protected:
  void SetUp() override {
    set_threads(1);
    if (!place().blas()) services.products = make_cublaslt(cublaslt_test::fake_api());
    context = test_context(services);
    if (services.products) context.facts.capabilities = of_compute_capability(90);
    if (!has_fp8_tensor_cores(context.facts)) GTEST_SKIP() << "the device has no products in fp8";
  }

  static Attrs in_fp8(Attrs attrs) {
    attrs.set("multiply", std::string("fp8"));
    return attrs;
  }

  std::string chosen_for(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
    std::string chosen;
    make_cuda_kernel(spec_of(op, inputs, attrs, context.facts), context, {}, &chosen);
    return chosen;
  }

  // The first output, which must have the same bits in every run.
  Tensor run(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs, RunOptions options = {}) {
    const KernelSpec spec = spec_of(op, inputs, in_fp8(attrs), context.facts);
    std::string chosen;
    const std::unique_ptr<CudaKernel> kernel = make_cuda_kernel(spec, context, {}, &chosen);
    EXPECT_EQ(chosen, "fp8");
    place().begin_loading();
    load_cuda_kernel(*kernel, spec);
    std::vector<Tensor> found;
    for (int turn = 0; turn < place().runs(); ++turn) {
      place().begin_run(turn);
      std::vector<Tensor> outputs = run_call(spec, inputs, options, chosen, [&](const KernelCall& call) {
        kernel->enqueue(call, nullptr);
        place().finish(nullptr);
      });
      if (turn > 0) expect_same_bytes(outputs[0], found[0]);
      found = std::move(outputs);
    }
    place().end_runs();
    return found[0];
  }

  cublaslt_test::Fake& fake = cublaslt_test::fresh_fake();
  TestServices services;
  CudaContext context;
};

// A product with the identity shows the codes' values: untransposed in linear and linear_dx, transposed in linear_dw,
// whose tiles end within the matrix.
TEST_F(CudaFp8, CodesAreTheNearestNumbers) {
  const Attrs wide{{"dtype", "f32"}};
  for (const double factor : {1.0, std::ldexp(1.0, -100), std::ldexp(1.0, 90), 0.77}) {
    const Tensor x = times(padded(numbers_around(kE4m3)), factor), dy = times(padded(numbers_around(kE5m2)), factor);
    expect_close(run("linear", {x, identity(16)}, wide), rounded_to(kE4m3, x), 0, 0);
    expect_close(run("linear_dx", {dy, identity(16)}, wide), rounded_to(kE5m2, dy), 0, 0);
  }
  const Tensor dy = Tensor::random(DType::bf16, {80, 144}, 1, 3e-3), x = Tensor::random(DType::bf16, {144, 80}, 2, 700);
  const Attrs first{{"accumulate", "carried"}};
  expect_close(run("linear_dw", {identity(80), dy, Tensor::filled(DType::f32, {144, 80}, 0)}, first),
               transposed(rounded_to(kE5m2, dy)), 0, 0);
  expect_close(run("linear_dw", {x, identity(144), Tensor::filled(DType::f32, {144, 80}, 0)}, first),
               rounded_to(kE4m3, x), 0, 0);
  const Attrs in_out{{"accumulate", "carried"}, {"layout", "in_out"}};
  expect_close(run("linear_dw", {identity(80), dy, Tensor::filled(DType::f32, {80, 144}, 0)}, in_out),
               rounded_to(kE5m2, dy), 0, 0);
}

// A row with an element that is not finite becomes NaN; it does not affect other rows, nor a matrix of zeros its scale.
TEST_F(CudaFp8, WhatIsNotFiniteIsNaN) {
  Tensor x = Tensor::random(DType::bf16, {16, 32}, 1);
  x.set(3 * 32 + 5, std::numeric_limits<double>::infinity());
  x.set(9 * 32 + 31, std::numeric_limits<double>::quiet_NaN());
  const Tensor w = Tensor::random(DType::bf16, {16, 32}, 2), y = run("linear", {x, w}, {{"dtype", "f32"}});
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(y.at(row * 16 + i)), row == 3 || row == 9) << row;
  const Tensor zeros = Tensor::filled(DType::bf16, {16, 32}, 0);
  expect_close(run("linear", {zeros, w}, {{"dtype", "f32"}}), Tensor::filled(DType::f32, {16, 16}, 0), 0, 0);
}

// The reference's result for the rounded operands, in f32.
class CudaFp8Products : public CudaFp8 {
 protected:
  // The precision that a device's sums may lose: Hopper's tensor cores keep 13 bits below the largest of the fp8
  // products that they add ("DeepSeek-V3 Technical Report", section 3.5.2). The fake library adds in fp32.
  double lost_in_sums(std::string_view op, std::vector<Tensor> by_hand, const Attrs& attrs, const RunOptions& options) {
    if (services.products) return 0;
    for (Tensor& x : by_hand)
      for (int64_t i = 0; i < x.count(); ++i) x.set(i, std::abs(x.at(i)));
    const Tensor sums = run_op(op, by_hand, attrs, options).outputs[0];
    double most = 0;
    for (int64_t i = 0; i < sums.count(); ++i) most = std::max(most, sums.at(i));
    return std::ldexp(most, -13);
  }

  void expect_product(std::string_view op, const std::vector<Tensor>& inputs, std::vector<Tensor> by_hand, Attrs attrs,
                      RunOptions options = {}) {
    const Tensor found = run(op, inputs, attrs, options);
    attrs.set("dtype", "f32");
    options.only = "reference", options.use_may = false;
    const Tensor expected = run_op(op, by_hand, attrs, options).outputs[0];
    const bool narrow = found.type().dtype == DType::bf16;
    const double lost = lost_in_sums(op, std::move(by_hand), attrs, options);
    expect_close(found, expected, lost + (narrow ? 4e-2 : 1e-4), narrow ? 1e-2 : 1e-4);
  }
};

TEST_F(CudaFp8Products, AreThoseOfTheRoundedOperands) {
  const int64_t rows = 48, outs = 80, ins = 144;
  const Tensor x = Tensor::random(DType::bf16, {rows, ins}, 1), dy = Tensor::random(DType::bf16, {rows, outs}, 3, 1e-3);
  const Tensor bias = Tensor::random(DType::f32, {outs}, 5), residual = Tensor::random(DType::f32, {rows, outs}, 6);
  const auto wide = [](const Tensor& narrow) {
    Tensor out(DType::f32, narrow.type().dims);
    for (int64_t i = 0; i < narrow.count(); ++i) out.set(i, narrow.at(i));
    return out;
  };
  RunOptions in_place;
  in_place.use_may = true;
  for (const char* layout : {"out_in", "in_out"}) {
    const bool out_in = std::string(layout) == "out_in";
    const std::vector<int64_t> dims = out_in ? std::vector<int64_t>{outs, ins} : std::vector<int64_t>{ins, outs};
    const Tensor w = Tensor::random(DType::bf16, dims, 2), sums = Tensor::random(DType::f32, dims, 4);
    const Tensor x8 = rounded_to(kE4m3, x), w8 = rounded_to(kE4m3, w), dy8 = rounded_to(kE5m2, dy);
    const Attrs plain{{"layout", layout}};
    Attrs attrs = plain;
    attrs.set("bias", int64_t{1});
    expect_product("linear", {x, w, bias}, {x8, w8, bias}, attrs);
    attrs = plain;
    attrs.set("residual", int64_t{1}).set("dtype", "f32");
    expect_product("linear", {x, w, residual}, {x8, w8, residual}, attrs, in_place);
    attrs = plain;
    attrs.set("addend", int64_t{1});
    const Tensor addend = Tensor::random(DType::bf16, {rows, ins}, 7);
    expect_product("linear_dx", {dy, w, addend}, {dy8, w8, wide(addend)}, attrs, in_place);
    for (const char* accumulate : {"carried", "always"})
      for (int64_t trip : {0, 1}) {
        RunOptions options;
        options.trip = trip;
        attrs = plain;
        attrs.set("accumulate", std::string(accumulate));
        const Tensor found = run("linear_dw", {x, dy, sums}, attrs, options);
        options.only = "reference";
        const Tensor expected = run_op("linear_dw", {x8, dy8, sums}, attrs, options).outputs[0];
        expect_close(found, expected, lost_in_sums("linear_dw", {x8, dy8, sums}, attrs, options) + 1e-4, 1e-4);
      }
  }
}

// A weight in f32 or in codes is first converted to bf16; low-rank products stay in bf16.
TEST_F(CudaFp8Products, TakeEveryFormOfTheWeight) {
  const Tensor x = Tensor::random(DType::bf16, {32, 64}, 1), w = Tensor::random(DType::f32, {48, 64}, 2);
  const Attrs wide{{"dtype", "f32"}};
  const Tensor x8 = rounded_to(kE4m3, x);
  expect_product("linear", {x, w}, {x8, rounded_to(kE4m3, rounded(w))}, wide);
  const Coded codes = coded(w, kNf4);
  expect_product("linear", {x, codes.codes}, {x8, rounded_to(kE4m3, rounded(codes.decoded))}, wide);
  const Tensor p = Tensor::random(DType::bf16, {32, 16}, 3), q = Tensor::random(DType::bf16, {48, 16}, 4);
  Attrs low = wide;
  low.set("low_rank", int64_t{1});
  Tensor p32(DType::f32, {32, 16}), q32(DType::f32, {48, 16});
  for (int64_t i = 0; i < p.count(); ++i) p32.set(i, p.at(i));
  for (int64_t i = 0; i < q.count(); ++i) q32.set(i, q.at(i));
  expect_product("linear", {x, rounded(w), p, q}, {x8, rounded_to(kE4m3, rounded(w)), p32, q32}, low);
  if (services.products) {
    EXPECT_EQ(fake.fp8_products, 3 * place().runs());
  }
}

// Against the product in fp64: an element's error is at most 2^-4 of itself (e4m3), or half a step of the smallest
// numbers.
TEST_F(CudaFp8Products, ErrAsMuchAsTheirRoundingMay) {
  const int64_t rows = 32, outs = 48, ins = 256;
  const Tensor x = Tensor::random(DType::bf16, {rows, ins}, 1), w = Tensor::random(DType::bf16, {outs, ins}, 2);
  const Tensor y = run("linear", {x, w}, {{"dtype", "f32"}});
  const double step_x = std::ldexp(1.0, -10) / scale_of(kE4m3, x), step_w = std::ldexp(1.0, -10) / scale_of(kE4m3, w);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t out = 0; out < outs; ++out) {
      double exact = 0, bound = 0;
      for (int64_t i = 0; i < ins; ++i) {
        const double a = x.at(row * ins + i), b = w.at(out * ins + i);
        const double da = std::abs(a) / 16 + step_x, db = std::abs(b) / 16 + step_w;
        exact += a * b;
        bound += std::abs(a) * db + da * std::abs(b) + da * db;
      }
      EXPECT_LE(std::abs(y.at(row * outs + out) - exact), bound * (1 + 1e-4));
    }
}

TEST_F(CudaFp8, OthersStayInBf16) {
  const auto inputs = [](DType dtype, int64_t rows, int64_t outs, int64_t ins) {
    return std::vector<Tensor>{Tensor(dtype, {rows, ins}), Tensor(dtype, {outs, ins})};
  };
  const Attrs attrs = in_fp8({});
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 16, 32, 48), attrs), "fp8");
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 16, 32, 48), {}), "cublaslt");
  for (const auto& [rows, outs, ins] : {std::array<int64_t, 3>{24, 32, 48}, {16, 40, 48}, {16, 32, 40}})
    EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, rows, outs, ins), attrs), "cublaslt") << rows << outs << ins;
  EXPECT_EQ(chosen_for("linear", inputs(DType::f32, 16, 32, 48), attrs), "cublaslt");
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 4, 32, 48), attrs), "rows");
  if (!services.products) return;
  context.facts.capabilities = of_compute_capability(86);
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 16, 32, 48), attrs), "cublaslt");
  context.facts.capabilities = of_compute_capability(89);
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 16, 32, 48), attrs), "fp8");
  services.products.reset();
  EXPECT_EQ(chosen_for("linear", inputs(DType::bf16, 16, 32, 48), attrs), "mma");
}

}  // namespace
}  // namespace headroom::fp8_on_cuda
