// Optimizers with 8-bit states: the quantile maps, which weights have them, kernels against each other and against the
// formula in double precision, with states rounded as by bitsandbytes.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/update/blocks.h"
#include "stepper.h"

namespace headroom::op_test {
namespace {

// By sorting, from the definition: seven decades of steps, their midpoints, with 0 and 1.
std::vector<double> sorted_map(bool is_signed) {
  std::vector<double> all{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int steps = (is_signed ? 1 : 2) << decade;
    for (int i = 0; i < steps; ++i) {
      const double low = 0.1 + 0.9 * i / steps, high = 0.1 + 0.9 * (i + 1) / steps;
      all.push_back(std::pow(10.0, decade - 6) * (low + high) / 2);
      if (is_signed) all.push_back(-all.back());
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(DynamicMap, HasTheValuesOfBitsandbytes) {
  for (const bool is_signed : {false, true}) {
    const std::vector<double> expected = sorted_map(is_signed);
    ASSERT_EQ(expected.size(), 256u);
    for (size_t code = 0; code < 256; ++code)
      ASSERT_NEAR(dynamic_map(is_signed).value[code], expected[code], 1e-7 * std::abs(expected[code])) << code;
  }
}

TEST(DynamicMap, FindsTheNearestCode) {
  for (const bool is_signed : {false, true})
    for (int i = -40000; i <= 40000; ++i) {
      if (!is_signed && i < 0) continue;
      // A third of them among the smallest magnitudes.
      const float x = static_cast<float>(i % 3 == 0 ? std::pow(i / 40000.0, 5) : i / 40000.0);
      const std::array<float, 256>& values = dynamic_map(is_signed).value;
      const double found = std::abs(static_cast<double>(values[nearest_code(is_signed, x)]) - static_cast<double>(x));
      for (const float value : values)
        ASSERT_LE(found, std::abs(static_cast<double>(value) - static_cast<double>(x)) + 1e-7) << x;
    }
}

// Both kernels decode and encode every code of both maps: a zero gradient leaves the states of Lion and AdamW unchanged
// except for their decay, which scales whole blocks.
TEST(DynamicMap, CodesStayWhereBlocksAreScaled) {
  for (const char* which : {"simd", "reference"}) {
    const Tensor w = Tensor::filled(DType::f32, {256}, 0.5), g = Tensor::filled(DType::f32, {256}, 0);
    Tensor codes(DType::u8, {256}), hyper = Tensor::filled(DType::f32, {kHyperCount}, 0);
    for (int64_t i = 0; i < 256; ++i) codes.set(i, static_cast<double>(i));
    hyper.set(kOwnScalar[0], 1), hyper.set(kOwnScalar[1], 1);
    const Tensor absmax(DType::f32, {1}, {0.75}), one(DType::f32, {1}, {1});
    const Attrs attrs{{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}};
    const auto found =
        run_op("adamw_8bit", {w, g, codes, absmax, codes, absmax, hyper, one}, attrs, {.only = which}).outputs;
    EXPECT_TRUE(found[1].same_bytes(codes)) << which;
    EXPECT_TRUE(found[3].same_bytes(codes)) << which;
    EXPECT_NEAR(found[2].at(0), 0.675, 1e-6);
    EXPECT_NEAR(found[4].at(0), 0.7425, 1e-6);
  }
}

constexpr const char* kNames[] = {"adamw_bnb_8bit", "lion_8bit"};

TEST(EightBits, AreForLargeWeightsThatAreNotLookedUp) {
  for (const char* name : kNames) {
    const Optimizer& optimizer = find_optimizer(name);
    const OptimizerSettings usual(name, ""), all(name, "min_8bit_size=0");
    const Type large{DType::f32, {Dim::of(64), Dim::of(65)}}, small{DType::f32, {Dim::of(64), Dim::of(63)}};
    const auto codes = optimizer.states(usual, large, ParameterKind::head);
    EXPECT_EQ(codes[0].type, (Type{DType::u8, large.shape}));
    EXPECT_EQ(codes[1].type, (Type{DType::f32, {Dim::of(17)}}));  // 16.25 blocks
    EXPECT_EQ(optimizer.states(usual, large, ParameterKind::embedding)[0].type.dtype, DType::f32);
    EXPECT_EQ(optimizer.states(usual, small, ParameterKind::matrix)[0].type.dtype, DType::f32);
    EXPECT_EQ(optimizer.states(all, small, ParameterKind::matrix)[0].type.dtype, DType::u8);
  }
}

TEST(EightBits, KernelsAgree) {
  for (const char* name : kNames)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t count : {int64_t{1}, int64_t{255}, int64_t{256}, int64_t{300}, int64_t{5000}}) {
        SCOPED_TRACE(fmt::format("{} {}", name, count));
        const OptimizerSettings settings(name, "min_8bit_size=0");
        Stepper fast(settings, dtype, {count}, ParameterKind::matrix, {.only = "simd"});
        Stepper plain(settings, dtype, {count}, ParameterKind::matrix, {.only = "reference"});
        EXPECT_EQ(fast.node().op->update_grain(), 256);
        Tensor a = Tensor::random(dtype, {count}, 1), b = a;
        for (uint64_t t = 1; t <= 3; ++t) {
          const Tensor gradient = Tensor::random(DType::f32, {count}, t + 10);
          a = fast.step(a, gradient, 0.01, 0.1, 0.7), b = plain.step(b, gradient, 0.01, 0.1, 0.7);
        }
        int64_t other = 0;  // f32 rounding may cross the threshold between two codes, or of a random rounding
        for (int64_t i = 0; i < count; ++i) other += std::abs(a.at(i) - b.at(i)) > 1e-6;
        EXPECT_LE(other, 1 + count / 500);
        for (size_t k = 0; k < fast.state_names().size(); ++k)
          for (int64_t i = 0; i < fast.state(k).count(); ++i)
            ASSERT_NEAR(fast.state(k).at(i), plain.state(k).at(i), k % 2 == 0 ? 1 : 1e-4);
      }
}

// AdamW whose moments are rounded after each step to the nearest value of the map, by the largest of their block.
class RoundedAdamW {
 public:
  explicit RoundedAdamW(size_t count) : m_(count, 0), v_(count, 0) {}

  void step(int t, const std::vector<double>& g, std::vector<double>& w) {
    for (size_t i = 0; i < g.size(); ++i) {
      m_[i] = 0.9 * m_[i] + 0.1 * g[i];
      v_[i] = 0.95 * v_[i] + 0.05 * g[i] * g[i];
      const double mean = m_[i] / (1 - std::pow(0.9, t)), square = v_[i] / (1 - std::pow(0.95, t));
      w[i] -= 0.01 * mean / (std::sqrt(square) + 1e-8);
    }
    round(m_, sorted_map(true)), round(v_, sorted_map(false));
  }

 private:
  static void round(std::vector<double>& x, const std::vector<double>& map) {
    for (size_t begin = 0; begin < x.size(); begin += 256) {
      const size_t end = std::min(x.size(), begin + 256);
      double most = 0;
      for (size_t i = begin; i < end; ++i) most = std::max(most, std::abs(x[i]));
      for (size_t i = begin; i < end; ++i) {
        const auto nearer = [&](double a, double b) { return std::abs(a * most - x[i]) < std::abs(b * most - x[i]); };
        x[i] = *std::min_element(map.begin(), map.end(), nearer) * most;
      }
    }
  }

  std::vector<double> m_, v_;
};

TEST(EightBits, FollowTheFormulaWithRoundedStates) {
  constexpr int64_t kCount = 700;
  for (const char* which : {"simd", "reference"}) {
    Stepper stepper(OptimizerSettings("adamw_bnb_8bit", "beta2=0.95,min_8bit_size=0"), DType::f32, {kCount},
                    ParameterKind::vector, {.only = which});
    Tensor weight = Tensor::random(DType::f32, {kCount}, 1);
    RoundedAdamW rounded(kCount);
    std::vector<double> exact(kCount), g(kCount);
    for (int64_t i = 0; i < kCount; ++i) exact[static_cast<size_t>(i)] = weight.at(i);
    for (int t = 1; t <= 4; ++t) {
      const Tensor gradient = Tensor::random(DType::f32, {kCount}, static_cast<uint64_t>(t) + 10);
      for (int64_t i = 0; i < kCount; ++i) g[static_cast<size_t>(i)] = gradient.at(i);
      weight = stepper.step(weight, gradient, 0.01, 0);
      rounded.step(t, g, exact);
    }
    int64_t other = 0;
    for (int64_t i = 0; i < kCount; ++i) other += std::abs(weight.at(i) - exact[static_cast<size_t>(i)]) > 2e-6;
    EXPECT_LE(other, 3) << which;
  }
}

// Zero states, as at the start of a run, are zero in both maps, and a zero gradient keeps them so.
TEST(EightBits, StartFromZero) {
  for (const char* name : kNames)
    for (const char* which : {"simd", "reference"}) {
      Stepper stepper(OptimizerSettings(name, "min_8bit_size=0"), DType::f32, {300}, ParameterKind::matrix,
                      {.only = which});
      const Tensor half = Tensor::filled(DType::f32, {300}, 0.5), none = Tensor::filled(DType::f32, {300}, 0);
      EXPECT_TRUE(stepper.step(half, none, 0.1, 0).same_bytes(half)) << name;
      EXPECT_EQ(stepper.state(1).at(0), 0);
    }
}

}  // namespace
}  // namespace headroom::op_test
