// Products of 8-bit codes: torchao's numbers, the formula on the codes of the operands, every kernel with the same
// bits, and their distance from full products.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "../ops_support/op_harness.h"
#include "base/error.h"
#include "ops/linear/int8.h"

namespace headroom {
namespace {

using op_test::accepts;
using op_test::run_op;
using op_test::Tensor;
using Json = nlohmann::json;

constexpr const char* kKernels[] = {"int8-amx", "int8-vnni", "int8", "reference"};

Attrs int8_attrs(bool out_in) {
  return {{"layout", out_in ? "out_in" : "in_out"}, {"multiply", std::string(kMultiplyInt8)}};
}

Tensor turned(const Tensor& matrix) {
  const int64_t rows = matrix.type().dims[0], cols = matrix.type().dims[1];
  Tensor other(matrix.type().dtype, {cols, rows});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) other.set(j * rows + i, matrix.at(i * cols + j));
  return other;
}

// The codes of one lane and their scale, by another way than the kernels': divisions in double, ties to even.
struct Lane {
  std::vector<int> codes;
  double scale = 0;
  Lane(const Tensor& from, int64_t first, int64_t step, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(from.at(first + i * step)));
    const float narrow = static_cast<float>(largest) / 127;
    scale = static_cast<double>(narrow);
    for (int64_t i = 0; i < count; ++i) {
      const double x = from.at(first + i * step);
      codes.push_back(largest > 0 ? static_cast<int>(std::nearbyint(static_cast<float>(x) * (1 / narrow))) : 0);
    }
  }
};

// c[rows, cols] = a[rows, depth] b[cols, depth]^T on codes, in f64.
Tensor product_of_codes(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.type().dims[0], depth = a.type().dims[1], cols = b.type().dims[0];
  std::vector<Lane> left, right;
  for (int64_t i = 0; i < rows; ++i) left.emplace_back(a, i * depth, 1, depth);
  for (int64_t j = 0; j < cols; ++j) right.emplace_back(b, j * depth, 1, depth);
  Tensor c(DType::f64, {rows, cols});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const Lane &x = left[static_cast<size_t>(i)], &y = right[static_cast<size_t>(j)];
      const int64_t sum = std::inner_product(x.codes.begin(), x.codes.end(), y.codes.begin(), int64_t{0});
      c.set(i * cols + j, static_cast<double>(sum) * x.scale * y.scale);
    }
  return c;
}

struct Int8Case {
  int64_t rows, ins, outs;
};
std::ostream& operator<<(std::ostream& out, const Int8Case& c) {
  return out << c.rows << " " << c.ins << "->" << c.outs;
}

class Int8 : public ::testing::TestWithParam<Int8Case> {
 protected:
  // Calls the op with every kernel: the same bits from all, near `wanted` with one rounding to the result's dtype.
  static void expect(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs, const Tensor& wanted) {
    const Tensor plain = run_op(op, inputs, attrs, {.only = "reference"}).outputs[0];
    const DType dtype = plain.type().dtype;
    const double rounding = dtype == DType::bf16 ? 1.0 / 256 : dtype == DType::f16 ? 1.0 / 2048 : 5e-7;
    op_test::expect_close(plain, wanted, 1e-6, rounding);
    for (const char* kernel : kKernels) {
      if (!accepts(op, inputs, attrs, kernel)) continue;
      SCOPED_TRACE(kernel);
      op_test::expect_same_bytes(run_op(op, inputs, attrs, {.only = kernel}).outputs[0], plain);
      op_test::expect_same_bytes(run_op(op, inputs, attrs, {.only = kernel, .use_may = true}).outputs[0], plain);
    }
  }
};

// What a product reads: numbers of `dtype`, a few of them zero.
Tensor numbers(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
  Tensor some = Tensor::random(dtype, {rows, cols}, seed);
  for (int64_t i = 0; i < some.count(); i += 7) some.set(i, 0);
  return some;
}

// A weight may be f32 beside a narrow x: it is rounded first.
TEST_P(Int8, ForwardIsTheProductOfTheCodes) {
  const auto [rows, ins, outs] = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false})
      for (int form = 0; form < 8; ++form) {
        const bool bias = form & 1, residual = form & 2, wide = form & 4;
        SCOPED_TRACE(fmt::format("{}, out_in {}, form {}", dtype_name(dtype), out_in, form));
        const Tensor x = numbers(dtype, rows, ins, 1), w = numbers(wide ? DType::f32 : dtype, outs, ins, 2);
        std::vector<Tensor> inputs{x, out_in ? w : turned(w)};
        Tensor wanted = product_of_codes(x, op_test::rounded(w, dtype));
        const Tensor added = Tensor::random(DType::f32, {outs}, 3), last = Tensor::random(DType::f32, {rows, outs}, 4);
        for (int64_t i = 0; i < wanted.count(); ++i)
          wanted.set(i, wanted.at(i) + (bias ? added.at(i % outs) : 0) + (residual ? last.at(i) : 0));
        if (bias) inputs.push_back(added);
        if (residual) inputs.push_back(last);
        Attrs attrs = int8_attrs(out_in);
        attrs.set("bias", int64_t{bias}).set("residual", int64_t{residual});
        attrs.set("dtype", residual ? std::string("f32") : std::string(dtype_name(dtype)));
        expect("linear", inputs, attrs, wanted);
      }
}

TEST_P(Int8, GradientsAreProductsOfCodes) {
  const auto [rows, ins, outs] = GetParam();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool out_in : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, out_in {}", dtype_name(dtype), out_in));
      const Tensor x = numbers(dtype, rows, ins, 1), w = numbers(dtype, outs, ins, 2),
                   dy = numbers(dtype, rows, outs, 3);
      expect("linear_dx", {dy, out_in ? w : turned(w)}, int8_attrs(out_in), product_of_codes(dy, turned(w)));
      const Tensor sums = Tensor::random(DType::f32, out_in ? std::vector{outs, ins} : std::vector{ins, outs}, 4);
      Tensor wanted = out_in ? product_of_codes(turned(dy), turned(x)) : product_of_codes(turned(x), turned(dy));
      for (int64_t i = 0; i < wanted.count(); ++i) wanted.set(i, wanted.at(i) + sums.at(i));
      Attrs attrs = int8_attrs(out_in);
      expect("linear_dw", {x, dy, sums}, attrs.set("accumulate", std::string("always")), wanted);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Int8,
                         ::testing::Values(Int8Case{1, 1, 1}, Int8Case{2, 3, 33}, Int8Case{13, 300, 35},
                                           Int8Case{40, 64, 96}, Int8Case{25, 17, 290}, Int8Case{301, 31, 12}));

// torchao's numbers, so the same on every machine. Its gradient of the weight has the factors in the order of in_out.
TEST(Int8Products, AreTorchaos) {
  const Json golden =
      Json::parse(std::ifstream(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/ops_linear/int8_products.json"));
  const auto size = [&](const char* key) { return golden.at(key).get<int64_t>(); };
  const int64_t rows = size("rows"), ins = size("ins"), outs = size("outs");
  const auto wanted = [&](const char* key, int64_t count, int64_t width) {
    Tensor tensor(DType::f32, {count, width});
    const auto bits = golden.at(key).get<std::vector<int32_t>>();
    for (size_t i = 0; i < bits.size(); ++i) tensor.as<float>()[i] = std::bit_cast<float>(bits[i]);
    return tensor;
  };
  Tensor x = Tensor::random(DType::f32, {rows, ins}, 1), dy = Tensor::random(DType::f32, {rows, outs}, 4);
  const Tensor w = Tensor::random(DType::f32, {outs, ins}, 2), bias = Tensor::random(DType::f32, {outs}, 3);
  for (int64_t i = 0; i < ins; ++i) x.set(2 * ins + i, 0);
  for (int64_t i = 0; i < rows; ++i) dy.set(i * outs + 3, 0);
  for (const char* kernel : kKernels) {
    SCOPED_TRACE(kernel);
    Attrs attrs = int8_attrs(true), turned_attrs = int8_attrs(false);
    if (!accepts("linear_dx", {dy, w}, attrs, kernel)) continue;
    op_test::expect_close(run_op("linear_dx", {dy, w}, attrs, {.only = kernel}).outputs[0], wanted("dx", rows, ins), 0,
                          0);
    attrs.set("bias", int64_t{1});
    op_test::expect_close(run_op("linear", {x, w, bias}, attrs, {.only = kernel}).outputs[0], wanted("y", rows, outs),
                          0, 0);
    turned_attrs.set("accumulate", std::string("always"));
    const Tensor none = Tensor::filled(DType::f32, {ins, outs}, 0);
    const Tensor dw = run_op("linear_dw", {x, dy, none}, turned_attrs, {.only = kernel}).outputs[0];
    op_test::expect_close(turned(dw), wanted("dw", outs, ins), 0, 0);
  }
}

// Of numbers as evenly spread as these an operand's codes are off by a 440th of its largest number, on average.
TEST(Int8Products, AreNearFullOnes) {
  const Tensor x = Tensor::random(DType::f32, {64, 256}, 1), w = Tensor::random(DType::f32, {96, 256}, 2);
  const auto distance = [&](std::string_view op, const std::vector<Tensor>& inputs, const Attrs& more) {
    Attrs full = more, codes = more;
    codes.set("multiply", std::string(kMultiplyInt8));
    const Tensor exact = run_op(op, inputs, full, {.only = "reference"}).outputs[0];
    const Tensor found = run_op(op, inputs, codes).outputs[0];
    double squares = 0, error = 0;
    for (int64_t i = 0; i < exact.count(); ++i) {
      squares += exact.at(i) * exact.at(i);
      error += (exact.at(i) - found.at(i)) * (exact.at(i) - found.at(i));
    }
    return std::sqrt(error / squares);
  };
  const Tensor dy = Tensor::random(DType::f32, {64, 96}, 3), none = Tensor::filled(DType::f32, {96, 256}, 0);
  for (const double error : {distance("linear", {x, w}, {{"bias", int64_t{0}}}), distance("linear_dx", {dy, w}, {}),
                             distance("linear_dw", {x, dy, none}, {{"accumulate", std::string("always")}})}) {
    EXPECT_GT(error, 1e-3);
    EXPECT_LT(error, 8e-3);
  }
}

TEST(Int8Products, NumbersThatAreNotFiniteReachTheResult) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const char* kernel : kKernels) {
        Tensor x = Tensor::random(dtype, {40, 50}, 1), w = Tensor::random(dtype, {45, 50}, 2);
        x.set(3 * 50 + 7, static_cast<double>(bad)), w.set(11 * 50 + 49, static_cast<double>(bad));
        for (const bool out_in : {true, false}) {
          const std::vector<Tensor> inputs{x, out_in ? w : turned(w)};
          if (!accepts("linear", inputs, int8_attrs(out_in), kernel)) continue;
          const Tensor y = run_op("linear", inputs, int8_attrs(out_in), {.only = kernel}).outputs[0];
          for (int64_t i = 0; i < y.count(); ++i)
            ASSERT_EQ(std::isnan(y.at(i)), i / 45 == 3 || i % 45 == 11) << kernel << " " << bad << " at " << i;
        }
      }
}

TEST(Int8Products, RowsTooSmallForAScaleAreZero) {
  Tensor x = Tensor::random(DType::f32, {4, 32}, 1);
  const Tensor w = Tensor::random(DType::f32, {40, 32}, 2);
  for (int64_t i = 0; i < 32; ++i) x.set(i, x.at(i) * 0x1p-110), x.set(32 + i, x.at(32 + i) * 0x1p-90);
  for (const char* kernel : kKernels) {
    if (!accepts("linear", {x, w}, int8_attrs(true), kernel)) continue;
    const Tensor y = run_op("linear", {x, w}, int8_attrs(true), {.only = kernel}).outputs[0];
    for (int64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(y.at(i), 0);
      EXPECT_NE(y.at(40 + i), 0);
    }
  }
}

// The deepest sum of largest codes is exact, one more step is multiplied in full.
TEST(Int8Products, SumsFit32Bits) {
  Attrs attrs = int8_attrs(true);
  attrs.set("accumulate", std::string("always"));
  const Tensor none = Tensor::filled(DType::f32, {1, 1}, 0);
  for (const int64_t depth : {int64_t{133144}, int64_t{133145}}) {
    const Tensor x = Tensor::filled(DType::f32, {depth, 1}, 1), dy = Tensor::filled(DType::f32, {depth, 1}, 1);
    const Tensor sum = run_op("linear_dw", {x, dy, none}, attrs).outputs[0];
    EXPECT_NEAR(sum.at(0), static_cast<double>(depth), 0.1);
    EXPECT_EQ(run_op("linear_dw", {x, dy, none}, attrs).implementation.starts_with("int8"),
              depth == 133144 && accepts("linear_dw", {x, dy, none}, attrs, "int8"));
  }
}

TEST(Int8Products, OtherKernelsRefuseThem) {
  const Tensor x = Tensor::random(DType::f32, {4, 64}, 1), w = Tensor::random(DType::f32, {64, 64}, 2);
  for (const char* kernel : {"rows", "amx", "onednn", "simd"})
    EXPECT_FALSE(accepts("linear", {x, w}, int8_attrs(true), kernel)) << kernel;
  EXPECT_FALSE(accepts("linear", {x, w}, {{"layout", "out_in"}}, "int8"));
  EXPECT_EQ(op_test::spec_of("linear", {x, w}, int8_attrs(true), {}).scratch_bytes, 0) << "none without AVX2";
}

}  // namespace
}  // namespace headroom
