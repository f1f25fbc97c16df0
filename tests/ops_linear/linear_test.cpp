#include <gtest/gtest.h>

#include <random>

#include "../ops_support/op_harness.h"
#include "base/error.h"
#include "hwy/targets.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct Case {
  int64_t batch, sequence, ins, outs;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.sequence << " " << c.ins << "->" << c.outs;
}

// w in its layout; the values depend on (out, in) alone.
Tensor weight(DType dtype, int64_t outs, int64_t ins, bool out_in, uint64_t seed) {
  const Tensor plain = Tensor::random(dtype, {outs, ins}, seed, 0.5);
  if (out_in) return plain;
  Tensor turned(dtype, {ins, outs});
  for (int64_t o = 0; o < outs; ++o)
    for (int64_t i = 0; i < ins; ++i) turned.set(i * outs + o, plain.at(o * ins + i));
  return turned;
}

double weight_at(const Tensor& w, bool out_in, int64_t out, int64_t in) {
  const std::vector<int64_t>& dims = w.type().dims;
  return w.at(out_in ? out * dims[1] + in : in * dims[1] + out);
}

// Sums in double; f64 results to compare with.
Tensor expected_linear(const Tensor& x, const Tensor& w, bool out_in, const Tensor* bias, const Tensor* residual,
                       int64_t outs, int64_t ins) {
  std::vector<int64_t> dims = x.type().dims;
  dims.back() = outs;
  Tensor y(DType::f64, dims);
  for (int64_t row = 0; row < y.count() / outs; ++row)
    for (int64_t out = 0; out < outs; ++out) {
      double sum = bias ? bias->at(out) : 0;
      if (residual) sum += residual->at(row * outs + out);
      for (int64_t in = 0; in < ins; ++in) sum += x.at(row * ins + in) * weight_at(w, out_in, out, in);
      y.set(row * outs + out, sum);
    }
  return y;
}

Tensor expected_dx(const Tensor& dy, const Tensor& w, bool out_in, const Tensor* addend, int64_t outs, int64_t ins) {
  std::vector<int64_t> dims = dy.type().dims;
  dims.back() = ins;
  Tensor dx(DType::f64, dims);
  for (int64_t row = 0; row < dx.count() / ins; ++row)
    for (int64_t in = 0; in < ins; ++in) {
      double sum = addend ? addend->at(row * ins + in) : 0;
      for (int64_t out = 0; out < outs; ++out) sum += dy.at(row * outs + out) * weight_at(w, out_in, out, in);
      dx.set(row * ins + in, sum);
    }
  return dx;
}

Tensor expected_dw(const Tensor& x, const Tensor& dy, bool out_in, const Tensor* acc, int64_t outs, int64_t ins) {
  Tensor dw(DType::f64, out_in ? std::vector<int64_t>{outs, ins} : std::vector<int64_t>{ins, outs});
  for (int64_t out = 0; out < outs; ++out)
    for (int64_t in = 0; in < ins; ++in) {
      const int64_t at = out_in ? out * ins + in : in * outs + out;
      double sum = acc ? acc->at(at) : 0;
      for (int64_t row = 0; row < x.count() / ins; ++row) sum += dy.at(row * outs + out) * x.at(row * ins + in);
      dw.set(at, sum);
    }
  return dw;
}

// Sums of `depth` products in f32, then one rounding to the result's dtype.
void expect_sums(const Tensor& found, const Tensor& expected, int64_t depth) {
  const DType dtype = found.type().dtype;
  const double rounding = dtype == DType::bf16 ? 1.0 / 256 : dtype == DType::f16 ? 1.0 / 2048 : 1e-6;
  op_test::expect_close(found, expected, 2e-6 * std::sqrt(static_cast<double>(depth)) + 1e-6, rounding);
}

const char* const kImplementations[] = {"rows", "amx", "onednn", "simd", "reference"};

// Every implementation of the machine, all layouts, dtypes and optional inputs.
class Linear : public ::testing::TestWithParam<Case> {
 protected:
  // Calls body(implementation) for those that accept.
  template <typename F>
  void each(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs, F body) {
    for (const char* implementation : kImplementations) {
      if (!op_test::accepts(op, inputs, attrs, implementation)) continue;
      SCOPED_TRACE(implementation);
      RunOptions options;
      options.only = implementation;
      body(options);
    }
  }
};

TEST_P(Linear, ForwardMatchesTheFormula) {
  const auto [batch, sequence, ins, outs] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (DType result : {DType::f32, DType::bf16, DType::f16})
      for (const bool out_in : {true, false})
        for (int extras = 0; extras < 4; ++extras) {
          if (result != DType::f32 && result != dtype) continue;
          SCOPED_TRACE(
              fmt::format("{} to {}, out_in {}, extras {}", dtype_name(dtype), dtype_name(result), out_in, extras));
          const bool with_bias = extras & 1, with_residual = extras & 2;
          std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, ins}, 1),
                                     weight(dtype, outs, ins, out_in, 2)};
          const Tensor bias = Tensor::random(DType::f32, {outs}, 3);
          const Tensor residual = Tensor::random(result, {batch, sequence, outs}, 4);
          if (with_bias) inputs.push_back(bias);
          if (with_residual) inputs.push_back(residual);
          const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"},
                            {"bias", int64_t{with_bias}},
                            {"residual", int64_t{with_residual}},
                            {"dtype", std::string(dtype_name(result))}};
          const Tensor expected = expected_linear(inputs[0], inputs[1], out_in, with_bias ? &bias : nullptr,
                                                  with_residual ? &residual : nullptr, outs, ins);
          each("linear", inputs, attrs, [&](RunOptions options) {
            const Tensor y = op_test::run_op("linear", inputs, attrs, options).outputs[0];
            expect_sums(y, expected, ins);
            op_test::expect_same_bytes(op_test::run_op("linear", inputs, attrs, options).outputs[0], y);
            options.use_may = true;
            op_test::expect_same_bytes(op_test::run_op("linear", inputs, attrs, options).outputs[0], y);
          });
        }
}

TEST_P(Linear, GradientOfTheInputMatchesTheFormula) {
  const auto [batch, sequence, ins, outs] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false})
      for (const bool with_addend : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, out_in {}, addend {}", dtype_name(dtype), out_in, with_addend));
        std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, outs}, 1),
                                   weight(dtype, outs, ins, out_in, 2)};
        const Tensor addend = Tensor::random(dtype, {batch, sequence, ins}, 3);
        if (with_addend) inputs.push_back(addend);
        const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"}, {"addend", int64_t{with_addend}}};
        const Tensor expected = expected_dx(inputs[0], inputs[1], out_in, with_addend ? &addend : nullptr, outs, ins);
        each("linear_dx", inputs, attrs, [&](RunOptions options) {
          const Tensor dx = op_test::run_op("linear_dx", inputs, attrs, options).outputs[0];
          expect_sums(dx, expected, outs);
          options.use_may = true;
          op_test::expect_same_bytes(op_test::run_op("linear_dx", inputs, attrs, options).outputs[0], dx);
        });
      }
}

// p q added to the product, with every combination of the other inputs; q is [outs, rank], for linear_dx [rank, ins].
TEST_P(Linear, LowRankProductsAreAdded) {
  const auto [batch, sequence, ins, outs] = GetParam();
  for (const auto& [dtype, result, multiply] :
       {std::tuple(DType::f32, DType::f32, ""), std::tuple(DType::bf16, DType::bf16, ""),
        std::tuple(DType::bf16, DType::f32, ""), std::tuple(DType::f32, DType::f32, "bf16x3"),
        std::tuple(DType::f16, DType::f16, ""), std::tuple(DType::f16, DType::f32, "")})
    for (const bool forward : {true, false})
      for (int64_t rank : {1, 16, 40})
        for (int extras = 0; extras < 8; ++extras) {
          const bool out_in = extras & 1, adds = extras & 2, bias = forward && (extras & 4);
          if (!forward && (extras & 4 || result != dtype)) continue;
          SCOPED_TRACE(fmt::format("{} to {} {} forward {} rank {} extras {}", dtype_name(dtype), dtype_name(result),
                                   multiply, forward, rank, extras));
          const int64_t wide = forward ? outs : ins;
          std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, forward ? ins : outs}, 1),
                                     weight(dtype, outs, ins, out_in, 2)};
          const Tensor bias_values = Tensor::random(DType::f32, {outs}, 3);
          const Tensor p = Tensor::random(dtype, {batch, sequence, rank}, 4), q = weight(dtype, wide, rank, forward, 5);
          const Tensor addend = Tensor::random(result, {batch, sequence, wide}, 6);
          if (bias) inputs.push_back(bias_values);
          inputs.insert(inputs.end(), {p, q});
          if (adds) inputs.push_back(addend);
          Attrs attrs{{"layout", out_in ? "out_in" : "in_out"}, {"low_rank", int64_t{1}}, {"multiply", multiply}};
          attrs.set(forward ? "residual" : "addend", int64_t{adds}).set("bias", int64_t{bias});
          attrs.set("dtype", std::string(dtype_name(result)));
          const Tensor beside = expected_linear(p, q, forward, nullptr, adds ? &addend : nullptr, wide, rank);
          const Tensor expected =
              forward ? expected_linear(inputs[0], inputs[1], out_in, bias ? &bias_values : nullptr, &beside, outs, ins)
                      : expected_dx(inputs[0], inputs[1], out_in, &beside, outs, ins);
          each(forward ? "linear" : "linear_dx", inputs, attrs, [&](RunOptions options) {
            const char* op = forward ? "linear" : "linear_dx";
            const Tensor y = op_test::run_op(op, inputs, attrs, options).outputs[0];
            if (options.only == "onednn" && result == DType::bf16)  // it rounds twice
              op_test::expect_close(y, expected, 1.0 / 64, 1.0 / 128);
            else if (*multiply != 0)
              op_test::expect_close(y, expected, 1e-3, 1e-4);
            else
              expect_sums(y, expected, ins + outs + rank);
            options.use_may = true;
            op_test::expect_same_bytes(op_test::run_op(op, inputs, attrs, options).outputs[0], y);
          });
        }
}

TEST_P(Linear, GradientOfTheWeightAccumulates) {
  const auto [batch, sequence, ins, outs] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, out_in {}", dtype_name(dtype), out_in));
      const std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, ins}, 1),
                                       Tensor::random(dtype, {batch, sequence, outs}, 2),
                                       weight(DType::f32, outs, ins, out_in, 3)};
      for (const char* accumulate : {"carried", "always"})
        for (int64_t trip : {0, 1}) {
          const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"}, {"accumulate", accumulate}};
          const bool adds = trip > 0 || accumulate == std::string_view("always");
          const Tensor expected = expected_dw(inputs[0], inputs[1], out_in, adds ? &inputs[2] : nullptr, outs, ins);
          each("linear_dw", inputs, attrs, [&](RunOptions options) {
            options.trip = trip;
            expect_sums(op_test::run_op("linear_dw", inputs, attrs, options).outputs[0], expected, batch * sequence);
          });
        }
    }
}

TEST_P(Linear, OverwritingIgnoresWhatTheAccumulatorHeld) {
  const auto [batch, sequence, ins, outs] = GetParam();
  const Tensor poison(DType::f32, {outs, ins});
  const std::vector<Tensor> inputs{Tensor::random(DType::bf16, {batch, sequence, ins}, 1),
                                   Tensor::random(DType::bf16, {batch, sequence, outs}, 2), poison};
  const Attrs attrs{{"accumulate", "carried"}};
  const Tensor expected = expected_dw(inputs[0], inputs[1], true, nullptr, outs, ins);
  each("linear_dw", inputs, attrs, [&](const RunOptions& options) {
    expect_sums(op_test::run_op("linear_dw", inputs, attrs, options).outputs[0], expected, batch * sequence);
  });
}

TEST_P(Linear, GradientOfTheBiasAccumulates) {
  const auto [batch, sequence, ins, outs] = GetParam();
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t trip : {0, 1}) {
      const std::vector<Tensor> inputs{Tensor::random(dtype, {batch, sequence, outs}, 1),
                                       Tensor::random(DType::f32, {outs}, 2)};
      Tensor expected(DType::f64, {outs});
      for (int64_t out = 0; out < outs; ++out) {
        double sum = trip == 0 ? 0 : inputs[1].at(out);
        for (int64_t row = 0; row < batch * sequence; ++row) sum += inputs[0].at(row * outs + out);
        expected.set(out, sum);
      }
      RunOptions options;
      options.trip = trip;
      expect_sums(op_test::run_op("bias_grad", inputs, {{"accumulate", "carried"}}, options).outputs[0], expected,
                  batch * sequence);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linear,
                         ::testing::Values(Case{1, 1, 1, 1}, Case{1, 1, 64, 32}, Case{1, 7, 33, 65},
                                           Case{2, 16, 32, 64}, Case{3, 11, 50, 97}, Case{1, 64, 96, 128},
                                           Case{2, 35, 130, 31}));

// Depths and widths beyond one block of every kernel, against the reference implementation.
TEST(LinearBlocks, LargeDepthsAgreeWithTheReference) {
  struct Size {
    int64_t rows, ins, outs;
  };
  for (const auto& [rows, ins, outs] :
       {Size{40, 4500, 70}, Size{70, 2100, 40}, Size{1100, 60, 33}, Size{33, 40, 1200}, Size{1100, 64, 1200}})
    for (DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{} {} {} {}", rows, ins, outs, dtype_name(dtype)));
      const std::vector<Tensor> inputs{Tensor::random(dtype, {1, rows, ins}, 1),
                                       Tensor::random(dtype, {outs, ins}, 2, 0.1),
                                       Tensor::random(dtype, {1, rows, outs}, 3)};
      const Tensor dw_acc = Tensor::random(DType::f32, {outs, ins}, 4);
      const std::vector<Tensor> dw_inputs{inputs[0], inputs[2], dw_acc};
      RunOptions reference;
      reference.only = "reference";
      const Attrs attrs{{"residual", int64_t{1}}};
      const Tensor y = op_test::run_op("linear", inputs, attrs, reference).outputs[0];
      const Tensor dw = op_test::run_op("linear_dw", dw_inputs, {}, reference).outputs[0];
      const double rounding = dtype == DType::bf16 ? 1.0 / 128 : 1e-4;
      for (const char* implementation : {"amx", "onednn", "simd"}) {
        SCOPED_TRACE(implementation);
        RunOptions options;
        options.only = implementation;
        if (op_test::accepts("linear", inputs, attrs, implementation))
          op_test::expect_close(op_test::run_op("linear", inputs, attrs, options).outputs[0], y, 1e-3, rounding);
        if (op_test::accepts("linear_dw", dw_inputs, {}, implementation))
          op_test::expect_close(op_test::run_op("linear_dw", dw_inputs, {}, options).outputs[0], dw, 1e-3, 1e-4);
      }
    }
}

// Gradients of adapters' matrices: few rows, or few columns, of many sums.
TEST(LinearBlocks, ThinGradientsMatchTheFormula) {
  for (int64_t rank : {1, 8, 16, 17, 40, 64, 65})
    for (const auto& [rows, wide] : {std::pair<int64_t, int64_t>{1, 5}, {31, 64}, {70, 97}, {520, 200}})
      for (const bool first : {true, false})
        for (int64_t trip : {0, 1}) {
          SCOPED_TRACE(fmt::format("rank {} rows {} wide {} first {} trip {}", rank, rows, wide, first, trip));
          const int64_t ins = first ? wide : rank, outs = first ? rank : wide;
          const std::vector<Tensor> inputs{Tensor::random(DType::bf16, {1, rows, ins}, 1),
                                           Tensor::random(DType::bf16, {1, rows, outs}, 2),
                                           Tensor::random(DType::f32, {outs, ins}, 3)};
          RunOptions options;
          options.trip = trip;
          const Tensor dw = op_test::run_op("linear_dw", inputs, {{"accumulate", "carried"}}, options).outputs[0];
          expect_sums(dw, expected_dw(inputs[0], inputs[1], true, trip > 0 ? &inputs[2] : nullptr, outs, ins), rows);
        }
}

// Products of f32 operands as bf16 products, in both memory orders and at ragged edges: as exact as the attribute
// promises, and never worse than its bound.
TEST(LinearMultiply, KeepsTheBitsItPromises) {
  struct Size {
    int64_t rows, ins, outs;
  };
  for (const auto& [rows, ins, outs] : {Size{64, 64, 64}, Size{37, 70, 45}, Size{40, 2500, 70}, Size{1100, 60, 33}})
    for (const bool out_in : {true, false})
      for (const auto& [multiply, bits] : {std::pair("bf16", 8), std::pair("bf16x3", 15)}) {
        SCOPED_TRACE(fmt::format("{} {} {} out_in {} {}", rows, ins, outs, out_in, multiply));
        const Tensor x = Tensor::random(DType::f32, {1, rows, ins}, 1), w = weight(DType::f32, outs, ins, out_in, 2),
                     dy = Tensor::random(DType::f32, {1, rows, outs}, 3),
                     acc = Tensor::random(DType::f32, out_in ? std::vector{outs, ins} : std::vector{ins, outs}, 4);
        const Attrs plain{{"layout", out_in ? "out_in" : "in_out"}};
        Attrs attrs = plain;
        attrs.set("multiply", std::string(multiply));
        RunOptions reference;
        reference.only = "reference";
        for (const auto& [op, inputs, depth] :
             {std::tuple("linear", std::vector{x, w}, ins), std::tuple("linear_dx", std::vector{dy, w}, outs),
              std::tuple("linear_dw", std::vector{x, dy, acc}, rows)}) {
          SCOPED_TRACE(op);
          const op_test::RunResult result = op_test::run_op(op, inputs, attrs);
          const Tensor expected = op_test::run_op(op, inputs, plain, reference).outputs[0];
          const double bound = 4 * std::sqrt(static_cast<double>(depth)) * std::ldexp(1.0, -bits);
          op_test::expect_close(result.outputs[0], expected, bound, 1e-5);
          EXPECT_EQ(result.implementation == "amx", op_test::host_facts().capabilities.has(kAmx));
        }
      }
}

// Every machine rounds the operands, and multiplies the same parts of them. The difference between two kernels is the
// rounding of fp32 sums, far below the omitted parts.
TEST(LinearMultiply, RoundsAlikeInEveryKernel) {
  constexpr int64_t kRows = 40, kOuts = 70, kIns = 60;
  const double sums = 8 * std::sqrt(static_cast<double>(kIns)) * std::ldexp(1.0, -24);
  const Tensor x = Tensor::random(DType::f32, {1, kRows, kIns}, 1), w = Tensor::random(DType::f32, {kOuts, kIns}, 2),
               dy = Tensor::random(DType::f32, {1, kRows, kOuts}, 3),
               acc = Tensor::filled(DType::f32, {kOuts, kIns}, 0);
  RunOptions reference;
  reference.only = "reference";
  for (const auto& [op, inputs] : {std::pair("linear", std::vector{x, w}), std::pair("linear_dx", std::vector{dy, w}),
                                   std::pair("linear_dw", std::vector{x, dy, acc})}) {
    const Tensor full = op_test::run_op(op, inputs, {}, reference).outputs[0];
    for (const char* multiply : {"bf16", "bf16x3"}) {
      SCOPED_TRACE(fmt::format("{} {}", op, multiply));
      const Attrs attrs{{"multiply", multiply}};
      const Tensor found = op_test::run_op(op, inputs, attrs).outputs[0];
      op_test::expect_close(found, op_test::run_op(op, inputs, attrs, reference).outputs[0], sums, 1e-6);
      double most = 0;
      for (int64_t i = 0; i < found.count(); ++i) most = std::max(most, std::abs(found.at(i) - full.at(i)));
      EXPECT_GT(most, 2 * sums);
    }
  }
}

// In headroom's own kernels a row's bits do not depend on the number of rows, nor on its position among them.
TEST(LinearKernels, ARowHasTheSameBitsAmongOthers) {
  constexpr int64_t kRows = 70;
  for (const int64_t ins : {96, 2500})
    for (const int64_t outs : {64, 75})
      for (const auto& [dtype, result] :
           {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16), std::pair(DType::bf16, DType::f32)})
        for (const char* implementation : {"amx", "simd", "reference"}) {
          SCOPED_TRACE(
              fmt::format("{}: {} -> {}, {} to {}", implementation, ins, outs, dtype_name(dtype), dtype_name(result)));
          const Tensor x = Tensor::random(dtype, {1, kRows, ins}, 1), w = Tensor::random(dtype, {outs, ins}, 2),
                       bias = Tensor::random(DType::f32, {outs}, 3),
                       residual = Tensor::random(result, {1, kRows, outs}, 4);
          const Attrs attrs{{"bias", int64_t{1}}, {"residual", int64_t{1}}, {"dtype", std::string(dtype_name(result))}};
          if (!op_test::accepts("linear", {x, w, bias, residual}, attrs, implementation)) continue;
          RunOptions options;
          options.only = implementation;
          const Tensor whole = op_test::run_op("linear", {x, w, bias, residual}, attrs, options).outputs[0];
          for (const auto& [first, count] : {std::pair<int64_t, int64_t>(0, 33), std::pair<int64_t, int64_t>(31, 39)}) {
            Tensor part_x(dtype, {1, count, ins}), part_residual(result, {1, count, outs});
            for (int64_t i = 0; i < part_x.count(); ++i) part_x.set(i, x.at(first * ins + i));
            for (int64_t i = 0; i < part_residual.count(); ++i) part_residual.set(i, residual.at(first * outs + i));
            const Tensor part = op_test::run_op("linear", {part_x, w, bias, part_residual}, attrs, options).outputs[0];
            int64_t differing = 0;
            for (int64_t i = 0; i < part.count(); ++i) differing += part.at(i) != whole.at(first * outs + i);
            EXPECT_EQ(differing, 0) << "rows " << first << " to " << first + count;
          }
        }
}

TEST(LinearMultiply, InfinitiesStayInfinite) {
  Tensor x = Tensor::random(DType::f32, {1, 40, 64}, 1), w = Tensor::random(DType::f32, {48, 64}, 2);
  x.set(3, std::numeric_limits<double>::infinity());
  for (const char* multiply : {"", "bf16x3"}) {
    const Tensor y = op_test::run_op("linear", {x, w}, {{"multiply", multiply}}).outputs[0];
    for (int64_t out = 0; out < 48; ++out) EXPECT_TRUE(std::isinf(y.at(out)) || std::isnan(y.at(out)));
    EXPECT_TRUE(std::isfinite(y.at(48)));
  }
}

// Numbers of all 24 bits whose magnitudes differ by at most `octaves` octaves.
Tensor spread(const std::vector<int64_t>& dims, int octaves, uint64_t seed) {
  Tensor numbers = Tensor::random(DType::f32, dims, seed);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t i = 0; i < element_count(dims); ++i)
    numbers.set(i, std::ldexp(numbers.at(i), -static_cast<int>(random() % static_cast<uint32_t>(octaves))));
  return numbers;
}

// The largest error of x w^T relative to the sum of its terms' magnitudes, and the root mean square.
std::pair<double, double> errors(const Tensor& y, const Tensor& x, const Tensor& w, int64_t rows, int64_t outs,
                                 int64_t ins) {
  double most = 0, squares = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t out = 0; out < outs; ++out) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < ins; ++i) {
        const double term = x.at(row * ins + i) * w.at(out * ins + i);
        sum += term;
        magnitude += std::abs(term);
      }
      const double error = std::abs(y.at(row * outs + out) - sum) / magnitude;
      most = std::max(most, error);
      squares += error * error;
    }
  return {most, std::sqrt(squares / static_cast<double>(rows * outs))};
}

// By default, six bf16 products replace one of f32 if the machine has tiles for them: they must be as exact.
TEST(LinearMultiply, FullIsAsExactOnTilesAsInF32) {
  constexpr int64_t kRows = 64, kOuts = 96;
  for (const int64_t ins : {32, 576, 1536})
    for (const int octaves : {1, 20}) {
      SCOPED_TRACE(fmt::format("{} inputs, {} octaves", ins, octaves));
      const Tensor x = spread({1, kRows, ins}, octaves, 1), w = spread({kOuts, ins}, octaves, 2);
      RunOptions tiles, plain;
      tiles.only = "amx";
      plain.only = "simd";
      if (!op_test::accepts("linear", {x, w}, {}, "amx") || !op_test::accepts("linear", {x, w}, {}, "simd"))
        GTEST_SKIP() << "the machine has no AMX";
      const auto [most, mean] =
          errors(op_test::run_op("linear", {x, w}, {}, tiles).outputs[0], x, w, kRows, kOuts, ins);
      const auto [plain_most, plain_mean] =
          errors(op_test::run_op("linear", {x, w}, {}, plain).outputs[0], x, w, kRows, kOuts, ins);
      EXPECT_LE(mean, 1.25 * plain_mean);
      EXPECT_LE(most, 1.5 * plain_most);
      RecordProperty(fmt::format("mean_{}_{}", ins, octaves), fmt::format("{:.2e} {:.2e}", mean, plain_mean));
    }
}

// The vector kernels on each instruction set they are built for.
TEST(LinearTargets, EveryVectorWidthAgreesWithTheReference) {
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    for (DType dtype : {DType::f32, DType::bf16})
      for (const bool out_in : {true, false})
        for (int64_t rows : {3, 50}) {
          SCOPED_TRACE(fmt::format("{} {} out_in {} rows {}", target, dtype_name(dtype), out_in, rows));
          const std::vector<Tensor> inputs{Tensor::random(dtype, {1, rows, 70}, 1), weight(dtype, 75, 70, out_in, 2),
                                           Tensor::random(DType::f32, {75}, 3),
                                           Tensor::random(dtype, {1, rows, 75}, 4)};
          const Attrs attrs{{"layout", out_in ? "out_in" : "in_out"}, {"bias", int64_t{1}}, {"residual", int64_t{1}}};
          RunOptions reference, options;
          reference.only = "reference";
          options.only = rows <= 8 ? "rows" : "simd";
          op_test::expect_close(op_test::run_op("linear", inputs, attrs, options).outputs[0],
                                op_test::run_op("linear", inputs, attrs, reference).outputs[0], 1e-4,
                                dtype == DType::bf16 ? 1.0 / 128 : 1e-5);
        }
  }
  hwy::SetSupportedTargetsForTest(0);
}

// The slope of sum(dy * linear(x)) along a direction agrees with linear_dx and linear_dw.
TEST(LinearGradient, AgreesWithFiniteDifferences) {
  const int64_t rows = 6, ins = 10, outs = 9;
  const Tensor x = Tensor::random(DType::f32, {2, 3, ins}, 1), w = Tensor::random(DType::f32, {outs, ins}, 2);
  const Tensor dy = Tensor::random(DType::f32, {2, 3, outs}, 3);
  const Tensor dx = op_test::run_op("linear_dx", {dy, w}).outputs[0];
  const Tensor dw = op_test::run_op("linear_dw", {x, dy, Tensor::filled(DType::f32, {outs, ins}, 0)}).outputs[0];
  const auto objective = [&](const Tensor& at_x, const Tensor& at_w) {
    const Tensor y = op_test::run_op("linear", {at_x, at_w}).outputs[0];
    double sum = 0;
    for (int64_t i = 0; i < rows * outs; ++i) sum += dy.at(i) * y.at(i);
    return sum;
  };
  const double step = 0.25;  // the objective is linear in either operand
  for (int64_t i = 0; i < x.count(); i += 7) {
    Tensor moved = x;
    moved.set(i, x.at(i) + step);
    EXPECT_NEAR((objective(moved, w) - objective(x, w)) / step, dx.at(i), 1e-4);
  }
  for (int64_t i = 0; i < w.count(); i += 7) {
    Tensor moved = w;
    moved.set(i, w.at(i) + step);
    EXPECT_NEAR((objective(x, moved) - objective(x, w)) / step, dw.at(i), 1e-4);
  }
}

TEST(LinearRules, RejectWhatDoesNotFit) {
  const Tensor x(DType::f32, {2, 3, 8}), w(DType::f32, {5, 8});
  const auto infer = [](const std::vector<Tensor>& inputs, const Attrs& attrs) {
    return op_test::infer_types(find_op("linear"), inputs, attrs);
  };
  EXPECT_EQ(infer({x, w}, {})[0].dims, (std::vector<int64_t>{2, 3, 5}));
  EXPECT_THROW(infer({x, w}, {{"layout", "in_out"}}), InternalError);
  EXPECT_THROW(infer({x, w}, {{"layout", "sideways"}}), InternalError);
  EXPECT_THROW(infer({x, w}, {{"bias", int64_t{1}}}), InternalError);
  EXPECT_THROW(infer({x, w}, {{"dtype", "bf16"}}), InternalError);
  EXPECT_THROW(infer({x, Tensor(DType::bf16, {5, 8})}, {}), InternalError);
  EXPECT_THROW(infer({x, w, Tensor(DType::f32, {8})}, {{"bias", int64_t{1}}}), InternalError);
  EXPECT_THROW(infer({x, w, Tensor(DType::f32, {2, 3, 8})}, {{"residual", int64_t{1}}}), InternalError);
}

TEST(LinearRules, WorkCountsTwoOperationsPerMultiplyAdd) {
  const Tensor x(DType::bf16, {2, 3, 8}), w(DType::bf16, {5, 8});
  const KernelSpec spec = op_test::spec_of("linear", {x, w}, {}, op_test::host_facts());
  const Work work = find_op("linear").work(spec.call());
  EXPECT_EQ(work.flops, 2.0 * 6 * 5 * 8);
  EXPECT_EQ(work.bytes, 2.0 * (6 * 8 + 5 * 8 + 6 * 5));
}

// The booked scratch is enough for the machine's fastest implementation, in the sizes of a small language model.
TEST(LinearKernels, BookedScratchIsEnoughForTheFastest) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA")) GTEST_SKIP() << "oneDNN's instruction set is restricted";
  const DeviceFacts facts = op_test::host_facts();
  if (facts.threads > 4) GTEST_SKIP() << "oneDNN's workspace grows with the threads";
  struct Size {
    int64_t outs, ins;
  };
  for (DType dtype : {DType::f32, DType::bf16})
    for (const int64_t rows : {512, 2048})
      for (const auto& [outs, ins] :
           {Size{1536, 576}, Size{576, 1536}, Size{576, 576}, Size{192, 576}, Size{3072, 768}, Size{768, 3072}}) {
        SCOPED_TRACE(fmt::format("{} rows {} {}->{}", dtype_name(dtype), rows, ins, outs));
        const ConcreteType x{dtype, {1, rows, ins}, {}}, y{dtype, {1, rows, outs}, {}}, w{dtype, {outs, ins}, {}};
        const ConcreteType sums{DType::f32, {outs, ins}, {}};
        KernelSpec specs[] = {{"linear", {}, {x, w}, {y}, 0},
                              {"linear_dx", {}, {y, w}, {x}, 0},
                              {"linear_dw", {{"accumulate", "carried"}}, {x, y, sums}, {sums}, 0}};
        const bool tiles = facts.capabilities.has(kAmx);  // f32 too, in three parts
        for (KernelSpec& spec : specs) {
          const bool collides = ins == 3072 && dtype == DType::f32 && spec.op != "linear";
          const bool library = facts.capabilities.has(dtype == DType::bf16 ? kAvx512Bf16 : kAvx512) && !collides;
          spec.scratch_bytes = scratch_bytes(find_op(spec.op), spec.call(), facts);
          EXPECT_LE(spec.scratch_bytes, int64_t{tiles ? 6 : 4} << 20) << spec.op;
          std::string chosen;
          make_cpu_kernel(spec, facts, {}, &chosen);
          EXPECT_EQ(chosen, tiles                           ? "amx"
                            : library                       ? "onednn"
                            : facts.capabilities.has(kAvx2) ? "simd"
                                                            : "reference")
              << spec.op;
        }
      }
}

// A kernel that needs more than was booked refuses; the reference remains.
TEST(LinearKernels, RefuseScratchThatWasNotBooked) {
  const Tensor x(DType::f32, {1, 64, 256}), w(DType::f32, {256, 256});
  DeviceFacts facts = op_test::host_facts();
  KernelSpec spec = op_test::spec_of("linear", {x, w}, {}, facts);
  spec.scratch_bytes = 0;
  std::string chosen;
  make_cpu_kernel(spec, facts, {}, &chosen);
  EXPECT_EQ(chosen, "reference");
  for (const KernelCandidate& candidate : cpu_kernels().candidates("linear")) {
    const KernelOffer offer = candidate.make(spec, facts);
    EXPECT_TRUE(offer.kernel || !offer.refusal.empty()) << candidate.implementation;
  }
}

}  // namespace
}  // namespace headroom
