// Weight-decomposed adapters: lengths of rows, products with given lengths and their gradient, against the formulas in
// double precision, in odd shapes and every dtype.
#include <gtest/gtest.h>

#include "../ops_support/coded_tensor.h"
#include "base/error.h"
#include "stream_support.h"

namespace headroom::op_test {
namespace {

std::vector<std::string> dora_kernels() {
  if (!host_facts().capabilities.has(kAvx2)) return {"reference"};
  return {"reference", "simd"};
}

Tensor lengths_by_formula(const Tensor& weight, const Tensor& a, const Tensor& b, double factor) {
  const int64_t outs = weight.type().dims[0], ins = weight.type().dims[1], rank = a.type().dims[0];
  Tensor lengths(DType::f64, {outs});
  for (int64_t row = 0; row < outs; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < ins; ++i) {
      double value = 0;
      for (int64_t k = 0; k < rank; ++k) value += b.at(row * rank + k) * a.at(k * ins + i);
      value = weight.at(row * ins + i) + factor * value;
      squares += value * value;
    }
    lengths.set(row, std::sqrt(squares));
  }
  return lengths;
}

struct LengthCase {
  int64_t outs, ins, rank;
  DType weight = DType::f32, matrices = DType::f32;
};

TEST(RowLengths, AreThoseOfTheSum) {
  for (const LengthCase& c :
       {LengthCase{1, 1, 1}, LengthCase{5, 33, 3}, LengthCase{64, 130, 8}, LengthCase{7, 64, 16, DType::bf16},
        LengthCase{9, 100, 2, DType::bf16, DType::bf16}, LengthCase{6, 17, 4, DType::f16, DType::f32}})
    for (const std::string& kernel : dora_kernels()) {
      SCOPED_TRACE(fmt::format("[{}, {}], rank {}, {}", c.outs, c.ins, c.rank, kernel));
      const Tensor weight = Tensor::random(c.weight, {c.outs, c.ins}, 1),
                   a = Tensor::random(c.matrices, {c.rank, c.ins}, 2),
                   b = Tensor::random(c.matrices, {c.outs, c.rank}, 3);
      const Tensor found = run_op("row_lengths", {weight, a, b}, {{"factor", 1.5}}, {.only = kernel}).outputs[0];
      expect_close(found, lengths_by_formula(weight, a, b, 1.5), 0, 2e-6);
    }
}

// The sum nearly cancels: the expansion into |w|^2 + 2 w.d + |d|^2 would leave nothing of these lengths.
TEST(RowLengths, AreExactWhereTheUpdateCancelsTheWeight) {
  Tensor weight(DType::f32, {4, 40}), a = Tensor::random(DType::f32, {1, 40}, 2);
  const Tensor b = Tensor::random(DType::f32, {4, 1}, 3);
  for (int64_t i = 0; i < weight.count(); ++i) weight.set(i, -b.at(i / 40) * a.at(i % 40) * (1 + 1e-5));
  for (const std::string& kernel : dora_kernels())
    expect_close(run_op("row_lengths", {weight, a, b}, {{"factor", 1.0}}, {.only = kernel}).outputs[0],
                 lengths_by_formula(weight, a, b, 1), 0, 0.02);
}

TEST(RowLengths, DoNotDependOnTheOtherRows) {
  const Tensor weight = Tensor::random(DType::f32, {11, 70}, 1), a = Tensor::random(DType::f32, {6, 70}, 2),
               b = Tensor::random(DType::f32, {11, 6}, 3);
  const Tensor all = run_op("row_lengths", {weight, a, b}, {{"factor", 2.0}}).outputs[0];
  for (int64_t row = 0; row < 11; ++row) {
    Tensor one(DType::f32, {1, 70}), own(DType::f32, {1, 6});
    for (int64_t i = 0; i < 70; ++i) one.set(i, weight.at(row * 70 + i));
    for (int64_t k = 0; k < 6; ++k) own.set(k, b.at(row * 6 + k));
    EXPECT_EQ(run_op("row_lengths", {one, a, own}, {{"factor", 2.0}}).outputs[0].at(0), all.at(row)) << row;
  }
}

TEST(RowLengths, OfCodesAreThoseOfTheirValues) {
  for (const Storage& storage : {kNf4, kDoubled, kInt4, kInt8Groups}) {
    const Coded weight = coded(Tensor::random(DType::f32, {7, 96}, 1), storage);
    const Tensor a = Tensor::random(DType::f32, {3, 96}, 2), b = Tensor::random(DType::f32, {7, 3}, 3);
    for (const std::string& kernel : dora_kernels())
      expect_same_bytes(run_op("row_lengths", {weight.codes, a, b}, {{"factor", 0.5}}, {.only = kernel}).outputs[0],
                        run_op("row_lengths", {weight.decoded, a, b}, {{"factor", 0.5}}, {.only = kernel}).outputs[0]);
  }
}

TEST(RowLengths, GoWhereTheyAreWanted) {
  const Tensor weight = Tensor::random(DType::f32, {5, 24}, 1), a = Tensor::random(DType::f32, {2, 24}, 2),
               b = Tensor::random(DType::f32, {5, 2}, 3), into = Tensor::filled(DType::f32, {5}, 9);
  expect_same_bytes(run_op("row_lengths", {weight, a, b, into}, {{"factor", 0.5}}).outputs[0],
                    run_op("row_lengths", {weight, a, b}, {{"factor", 0.5}}).outputs[0]);
}

TEST(RowLengths, RefuseWhatDoesNotFit) {
  const Tensor weight = Tensor::random(DType::f32, {5, 24}, 1), a = Tensor::random(DType::f32, {2, 24}, 2),
               b = Tensor::random(DType::f32, {5, 2}, 3);
  EXPECT_THROW(run_op("row_lengths", {weight, a, b}), InternalError);
  EXPECT_THROW(run_op("row_lengths", {weight, b, a}, {{"factor", 1.0}}), InternalError);
  EXPECT_THROW(run_op("row_lengths", {weight, a, b, a}, {{"factor", 1.0}}), InternalError);
}

struct Rows {
  std::vector<int64_t> dims;
  DType z = DType::f32, y = DType::f32;
};

std::vector<Rows> rows_cases() {
  return {{{1, 1}},
          {{2, 3, 37}},
          {{130, 64}},
          {{3, 70, 300}, DType::bf16, DType::bf16},
          {{2, 5, 513}, DType::bf16, DType::f32},
          {{4, 33}, DType::f16, DType::f16}};
}

Attrs added(bool bias, bool residual, DType y) {
  return {{"bias", int64_t{bias}}, {"residual", int64_t{residual}}, {"dtype", std::string(dtype_name(y))}};
}

// Lengths of which one is 0.
Tensor some_lengths(int64_t width) {
  Tensor lengths = Tensor::random(DType::f32, {width}, 8, 0.5);
  for (int64_t i = 0; i < width; ++i) lengths.set(i, 1 + lengths.at(i));
  if (width > 1) lengths.set(width / 2, 0);
  return lengths;
}

double factor(const Tensor& magnitude, const Tensor& lengths, int64_t i) {
  return lengths.at(i) == 0 ? 0 : magnitude.at(i) / lengths.at(i);
}

TEST(Magnitude, ScalesThenAdds) {
  for (const Rows& c : rows_cases())
    for (const int parts : {0, 1, 2, 3})
      for (const std::string& kernel : dora_kernels()) {
        SCOPED_TRACE(fmt::format("{} columns, {}, {}", c.dims.back(), parts, kernel));
        const int64_t width = c.dims.back();
        const bool bias = parts % 2 != 0, residual = parts / 2 != 0;
        std::vector<Tensor> in{Tensor::random(c.z, c.dims, 1), Tensor::random(DType::f32, {width}, 2),
                               some_lengths(width)};
        if (bias) in.push_back(Tensor::random(DType::f32, {width}, 3));
        if (residual) in.push_back(Tensor::random(c.y, c.dims, 4));
        Tensor expected(DType::f64, c.dims);
        for (int64_t i = 0; i < expected.count(); ++i)
          expected.set(i, in[0].at(i) * factor(in[1], in[2], i % width) + (bias ? in[3].at(i % width) : 0) +
                              (residual ? in.back().at(i) : 0));
        const Tensor y = run_op("magnitude", in, added(bias, residual, c.y), {.only = kernel}).outputs[0];
        expect_close(y, expected, c.y == DType::f32 ? 1e-6 : 1e-2, c.y == DType::f32 ? 1e-6 : 8e-3);
      }
}

TEST(Magnitude, WorksInPlace) {
  const std::vector<Tensor> in{Tensor::random(DType::f32, {3, 50}, 1), Tensor::random(DType::f32, {50}, 2),
                               some_lengths(50), Tensor::random(DType::f32, {3, 50}, 4)};
  for (const std::string& kernel : dora_kernels())
    for (const bool residual : {false, true}) {
      const std::vector<Tensor> operands(in.begin(), in.end() - (residual ? 0 : 1));
      const Attrs attrs{{"bias", int64_t{0}}, {"residual", int64_t{residual}}};
      expect_same_bytes(run_op("magnitude", operands, attrs, {.only = kernel, .use_may = true}).outputs[0],
                        run_op("magnitude", operands, attrs, {.only = kernel}).outputs[0]);
    }
}

std::vector<Tensor> gradient_operands(const Rows& c) {
  const int64_t width = c.dims.back();
  return {Tensor::random(c.y, c.dims, 5), Tensor::random(c.z, c.dims, 1), Tensor::random(DType::f32, {width}, 2),
          some_lengths(width), Tensor::random(DType::f32, {width}, 6)};
}

TEST(MagnitudeGrad, IsThatOfTheFormula) {
  for (const Rows& c : rows_cases())
    for (const int64_t trip : {0, 1})
      for (const std::string& kernel : dora_kernels()) {
        SCOPED_TRACE(fmt::format("{} columns, trip {}, {}", c.dims.back(), trip, kernel));
        const std::vector<Tensor> in = gradient_operands(c);
        const int64_t width = c.dims.back();
        Tensor dz(DType::f64, c.dims), sums = Tensor::filled(DType::f64, {width}, 0);
        for (int64_t i = 0; i < dz.count(); ++i) {
          dz.set(i, in[0].at(i) * factor(in[2], in[3], i % width));
          if (in[3].at(i % width) != 0)
            sums.set(i % width, sums.at(i % width) + in[0].at(i) * in[1].at(i) / in[3].at(i % width));
        }
        for (int64_t i = 0; trip > 0 && i < width; ++i) sums.set(i, sums.at(i) + in[4].at(i));
        Attrs attrs{{"accumulate", "carried"}};
        if (c.z != c.y) attrs.set("dtype", std::string(dtype_name(c.z)));
        const std::vector<Tensor> found = run_op("magnitude_grad", in, attrs, {.only = kernel, .trip = trip}).outputs;
        expect_close(found[0], dz, 1e-6, c.z == DType::f32 ? 1e-6 : 8e-3);
        expect_close(found[1], sums, 1e-4, 1e-5);
      }
}

TEST(MagnitudeGrad, MayTakeTheCotangentsPlace) {
  const std::vector<Tensor> in = gradient_operands({{2, 70, 40}});
  for (const std::string& kernel : dora_kernels()) {
    const RunResult apart = run_op("magnitude_grad", in, {}, {.only = kernel}),
                    within = run_op("magnitude_grad", in, {}, {.only = kernel, .use_may = true});
    for (size_t i = 0; i < apart.outputs.size(); ++i) expect_same_bytes(within.outputs[i], apart.outputs[i]);
  }
}

}  // namespace
}  // namespace headroom::op_test
