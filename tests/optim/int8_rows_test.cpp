// Weights in 8-bit codes with a scale per row: updates against those of f32 weights, and rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../ops_support/coded_tensor.h"
#include "ops/stream/row_codes.h"
#include "stepper.h"

namespace headroom::op_test {
namespace {

constexpr const char* kOptimizers[] = {"adamw", "adam", "sgd", "rmsprop", "adagrad", "lion_32bit"};

Stepper int8_stepper(const char* optimizer, int64_t rows, int64_t columns, const char* which) {
  return Stepper(OptimizerSettings(optimizer, ""), DType::f32, {rows, columns}, ParameterKind::matrix, {.only = which},
                 "layer.weight", int8_rows_of(columns));
}

std::vector<double> values_of(const Tensor& codes) {
  const int64_t rows = codes.type().dims[0], columns = codes.type().dims[1];
  const Int8Rows stored = int8_rows(codes.buffer().data(), rows, columns);
  std::vector<float> row(static_cast<size_t>(columns));
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r) {
    decode_row(stored, r, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

// After a step from the same values, every element is within one code step of its f32 result, and the states are those
// of f32.
TEST(Int8Rows, AStepEndsWithinOneCodeOfTheWideOne) {
  for (const char* optimizer : kOptimizers)
    for (const char* which : {"reference", "simd"})
      for (const int64_t columns : {1, 17, 64, 333}) {
        SCOPED_TRACE(fmt::format("{} {} {}", optimizer, which, columns));
        const Coded start = coded(Tensor::random(DType::f32, {5, columns}, 3), int8_rows_of(columns));
        const Tensor gradient = Tensor::random(DType::f32, {5, columns}, 4);
        Stepper narrow = int8_stepper(optimizer, 5, columns, which);
        Stepper wide(OptimizerSettings(optimizer, ""), DType::f32, {5, columns}, ParameterKind::matrix,
                     {.only = which});
        const Tensor codes = narrow.step(start.codes, gradient, 0.01, 0.1);
        const Tensor exact = wide.step(start.decoded, gradient, 0.01, 0.1);
        const std::vector<double> found = values_of(codes);
        for (int64_t i = 0; i < exact.count(); ++i) {
          double most = 0;
          for (int64_t k = i / columns * columns; k < (i / columns + 1) * columns; ++k)
            most = std::max(most, std::abs(exact.at(k)));
          EXPECT_NEAR(found[static_cast<size_t>(i)], exact.at(i), most / 127 * 1.0001) << i;
        }
        for (size_t k = 0; k < narrow.state_names().size(); ++k)
          expect_close(narrow.state(k), wide.state(k), 1e-7, 1e-6);
      }
}

TEST(Int8Rows, BothKernelsDrawAlike) {
  constexpr int64_t kColumns = 1031;
  const Coded start = coded(Tensor::random(DType::f32, {4, kColumns}, 3), int8_rows_of(kColumns));
  const Tensor gradient = Tensor::random(DType::f32, {4, kColumns}, 4);
  for (const char* optimizer : kOptimizers) {
    Stepper fast = int8_stepper(optimizer, 4, kColumns, "simd"),
            plain = int8_stepper(optimizer, 4, kColumns, "reference");
    const std::vector<double> a = values_of(fast.step(start.codes, gradient, 0.01, 0.1));
    const std::vector<double> b = values_of(plain.step(start.codes, gradient, 0.01, 0.1));
    int other = 0;
    for (size_t i = 0; i < a.size(); ++i) other += std::abs(a[i] - b[i]) > 1e-6;
    EXPECT_LE(other, 8) << optimizer;  // an ulp may cross a rounding threshold
  }
}

// The mean over many steps is the number itself: updates far below a code's step are not lost.
TEST(Int8Rows, RoundingIsUnbiased) {
  constexpr int64_t kColumns = 4096;
  std::vector<double> values(kColumns, 0.3);
  values[0] = 1.27;                                                     // a step of 0.01
  for (size_t i = 1; i < values.size(); ++i) values[i] = 0.3 + 0.0025;  // 30.25 steps
  const Tensor row(DType::f32, {1, kColumns}, values);
  Tensor codes(ConcreteType{DType::f32, {1, kColumns}, int8_rows_of(kColumns)});
  encode_row(row.as<float>(), int8_rows(codes.buffer().data(), 1, kColumns), 0, 12345);
  int up = 0;
  for (int64_t i = 1; i < kColumns; ++i) {
    const int8_t code = codes.as<int8_t>()[i];
    ASSERT_TRUE(code == 30 || code == 31);
    up += code == 31;
  }
  const double share = static_cast<double>(up) / (kColumns - 1);
  EXPECT_NEAR(share, 0.25, 4.5 * std::sqrt(0.25 * 0.75 / kColumns));
  EXPECT_EQ(codes.as<int8_t>()[0], 127);
}

TEST(Int8Rows, DrawsDependOnTheStepAlone) {
  constexpr int64_t kColumns = 512;
  const Coded start = coded(Tensor::random(DType::f32, {64, kColumns}, 3), int8_rows_of(kColumns));
  const Tensor gradient = Tensor::random(DType::f32, {64, kColumns}, 4);
  Stepper one = int8_stepper("adamw", 64, kColumns, "simd"), other = int8_stepper("adamw", 64, kColumns, "simd");
  const Tensor first = one.step(start.codes, gradient, 0.01, 0), same = other.step(start.codes, gradient, 0.01, 0);
  expect_same_bytes(first, same);
  EXPECT_FALSE(one.step(start.codes, gradient, 0.01, 0).same_bytes(first));
}

TEST(Int8Rows, ZeroRowsAndWhatIsNotFinite) {
  for (const char* which : {"reference", "simd"}) {
    Stepper stepper = int8_stepper("sgd", 2, 40, which);
    const Coded zero = coded(Tensor::filled(DType::f32, {2, 40}, 0), int8_rows_of(40));
    Tensor gradient = Tensor::filled(DType::f32, {2, 40}, 0);
    for (const double value : values_of(stepper.step(zero.codes, gradient, 0.1, 0))) EXPECT_EQ(value, 0);
    gradient.set(3, NAN);
    const std::vector<double> found = values_of(stepper.step(zero.codes, gradient, 0.1, 0));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i < 40) << which << " " << i;
  }
}

TEST(Int8Rows, OtherCodesAreRefused) {
  EXPECT_THROW(Stepper(OptimizerSettings("adamw", ""), DType::f32, {2, 64}, ParameterKind::matrix, {}, "w", kInt4),
               InternalError);
  EXPECT_THROW(Stepper(OptimizerSettings("adamw_bnb_8bit", "min_8bit_size=1"), DType::f32, {64, 64},
                       ParameterKind::matrix, {}, "w", int8_rows_of(64)),
               InternalError);
}

}  // namespace
}  // namespace headroom::op_test
