// Random bits by counter: stochastic rounding in updates of narrow weights, and dropout.
#include <algorithm>

#include "stream_support.h"

namespace headroom::op_test {
namespace {

constexpr int64_t kCount = 100003;
constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};
constexpr DType kNarrow[] = {DType::bf16, DType::f16};

// From 1 to the next number.
double step_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-7 : 0x1p-10; }

Tensor hyper_at(uint64_t seed, uint32_t step, double learning_rate = 0) {
  Tensor hyper = Tensor::filled(DType::f32, {16}, 0);
  hyper.set(0, learning_rate);
  hyper.set(2, 1);
  hyper.set(3, 1);
  std::memcpy(hyper.as<float>() + 6, &seed, sizeof(seed));
  std::memcpy(hyper.as<float>() + 8, &step, sizeof(step));
  return hyper;
}

// One update of numbers `from` by +`move`, whatever the gradient's magnitude.
Tensor update(double move, const Tensor& hyper, int64_t tensor, const std::string& which, DType dtype = DType::bf16,
              double from = 1) {
  const Tensor w = Tensor::filled(dtype, {kCount}, from), g = Tensor::filled(DType::f32, {kCount}, -1);
  const Tensor zero = Tensor::filled(DType::f32, {kCount}, 0), one = Tensor(DType::f32, {1}, {1});
  Tensor scalars = hyper;
  scalars.set(0, move);
  const Attrs attrs{{"beta1", 0.0}, {"beta2", 0.0}, {"eps", 0.0}, {"decay", int64_t{0}}, {"tensor", tensor}};
  return run_op("adamw", {w, g, zero, zero, scalars, one}, attrs, {.only = which}).outputs[0];
}

double share_above(const Tensor& w, double from, double step) {
  int64_t above = 0;
  for (int64_t i = 0; i < w.count(); ++i) {
    EXPECT_TRUE(w.at(i) == from || w.at(i) == from + step) << w.at(i);
    above += w.at(i) > from ? 1 : 0;
  }
  return static_cast<double>(above) / static_cast<double>(w.count());
}

TEST(StochasticRounding, IsUnbiased) {
  for (const char* which : {"reference", "simd"})
    for (const DType dtype : kNarrow)
      for (double fraction : {0.01, 0.3, 0.5, 0.92}) {
        const double step = step_of(dtype);
        const double share = share_above(update(fraction * step, hyper_at(42, 7), 11, which, dtype), 1, step);
        const double deviation = std::sqrt(fraction * (1 - fraction) / static_cast<double>(kCount));
        EXPECT_NEAR(share, fraction, 4.5 * deviation + 0x1p-13) << which << ' ' << dtype_name(dtype);
      }
}

// Below 2^-14 f16 numbers are 2^-24 apart, whatever their magnitude.
TEST(StochasticRounding, IsUnbiasedAmongSubnormalHalves) {
  for (const char* which : {"reference", "simd"})
    for (const double from : {0.0, 5 * 0x1p-24, 1023 * 0x1p-24, -7 * 0x1p-24})
      for (const double fraction : {0.3, 0.75}) {
        const double share =
            share_above(update(fraction * 0x1p-24, hyper_at(42, 7), 11, which, DType::f16, from), from, 0x1p-24);
        const double deviation = std::sqrt(fraction * (1 - fraction) / static_cast<double>(kCount));
        EXPECT_NEAR(share, fraction, 4.5 * deviation + 0x1p-12) << which << ' ' << from;
      }
}

TEST(StochasticRounding, LeavesWhatIsRepresentable) {
  for (const DType dtype : kNarrow) {
    const double step = step_of(dtype);
    EXPECT_EQ(share_above(update(0, hyper_at(1, 1), 3, "simd", dtype), 1, step), 0);
    EXPECT_EQ(share_above(update(step, hyper_at(1, 1), 3, "simd", dtype), 1, step), 1);
  }
}

TEST(StochasticRounding, DrawsByKeyAlone) {
  const int team = threads();
  const Tensor drawn = update(0.5 * 0x1p-7, hyper_at(42, 7), 11, "simd");
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    EXPECT_TRUE(update(0.5 * 0x1p-7, hyper_at(42, 7), 11, "simd").same_bytes(drawn)) << threads;
  }
  set_threads(team);
  EXPECT_TRUE(update(0.5 * 0x1p-7, hyper_at(42, 7), 11, "reference").same_bytes(drawn));
  for (const double from : {1.0, 900 * 0x1p-24}) {
    const double move = from * 0x1p-12;
    EXPECT_TRUE(update(move, hyper_at(42, 7), 11, "reference", DType::f16, from)
                    .same_bytes(update(move, hyper_at(42, 7), 11, "simd", DType::f16, from)));
  }
  // Half of the elements agree by chance if seed, step or tensor differs.
  for (const Tensor& other :
       {update(0.5 * 0x1p-7, hyper_at(43, 7), 11, "simd"), update(0.5 * 0x1p-7, hyper_at(42, 8), 11, "simd"),
        update(0.5 * 0x1p-7, hyper_at(42, 7), 12, "simd")}) {
    int64_t same = 0;
    for (int64_t i = 0; i < kCount; ++i) same += other.at(i) == drawn.at(i) ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(same), 0.5 * kCount, 4.5 * 0.5 * std::sqrt(static_cast<double>(kCount)));
  }
}

// Values that are not finite stay so.
TEST(StochasticRounding, KeepsInfinitiesAndNan) {
  const Attrs attrs{{"beta1", 0.0}, {"beta2", 0.0}, {"eps", 1.0}, {"decay", int64_t{0}}, {"tensor", int64_t{1}}};
  const Tensor zero = Tensor::filled(DType::f32, {3}, 0), one(DType::f32, {1}, {1});
  for (const char* which : {"reference", "simd"})
    for (const DType dtype : kNarrow) {
      const Tensor w(dtype, {3}, {INFINITY, -INFINITY, NAN});
      const Tensor found =
          run_op("adamw", {w, zero, zero, zero, hyper_at(1, 2), one}, attrs, {.only = which}).outputs[0];
      EXPECT_EQ(found.at(0), INFINITY);
      EXPECT_EQ(found.at(1), -INFINITY);
      EXPECT_TRUE(std::isnan(found.at(2)));
    }
}

Attrs dropout(double rate, int64_t tensor = 5) { return {{"rate", rate}, {"tensor", tensor}}; }

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (DType dtype : kFloats)
    for (double rate : {0.05, 0.5, 0.9}) {
      const Tensor ones = Tensor::filled(dtype, {1, 7, 14287}, 1);
      const Tensor y = run_op("dropout", {ones, hyper_at(42, 3)}, dropout(rate)).outputs[0];
      const double kept = Tensor::filled(dtype, {1}, 1 / (1 - rate)).at(0);
      int64_t dropped = 0;
      for (int64_t i = 0; i < y.count(); ++i) {
        ASSERT_TRUE(y.at(i) == 0 || y.at(i) == kept) << y.at(i);
        dropped += y.at(i) == 0 ? 1 : 0;
      }
      const auto count = static_cast<double>(y.count());
      EXPECT_NEAR(static_cast<double>(dropped), rate * count, 4.5 * std::sqrt(rate * (1 - rate) * count));
    }
}

TEST(Dropout, KernelsAgreeBitwise) {
  for (DType dtype : kFloats)
    for (int64_t width : {1, 31, 200}) {
      const Tensor x = Tensor::random(dtype, {2, 3, width}, 1);
      const std::vector<Tensor> inputs{x, hyper_at(9, 1)};
      EXPECT_TRUE(run_op("dropout", inputs, dropout(0.4), {.only = "simd"})
                      .outputs[0]
                      .same_bytes(run_op("dropout", inputs, dropout(0.4), {.only = "reference"}).outputs[0]));
    }
}

TEST(Dropout, TheResultMayHaveAnotherElementType) {
  for (DType from : kFloats)
    for (DType to : kFloats) {
      if (from != to && from != DType::f32 && to != DType::f32) continue;
      const Tensor x = Tensor::random(from, {2, 3, 77}, 1);
      Attrs attrs = dropout(0.4);
      attrs.set("dtype", std::string(dtype_name(to)));
      const Tensor y = run_op("dropout", {x, hyper_at(9, 1)}, attrs, {.only = "simd"}).outputs[0];
      EXPECT_EQ(y.type().dtype, to);
      expect_same_bytes(run_op("dropout", {x, hyper_at(9, 1)}, attrs, {.only = "reference"}).outputs[0], y);
      const Tensor same = run_op("dropout", {x, hyper_at(9, 1)}, dropout(0.4)).outputs[0];
      for (int64_t i = 0; i < x.count(); ++i) ASSERT_NEAR(y.at(i), same.at(i), 0.01 * std::abs(same.at(i)));
    }
}

// A batch in two micro-batches has the mask of the whole batch.
TEST(Dropout, MaskDoesNotDependOnTheMicroBatch) {
  const Tensor whole = Tensor::filled(DType::f32, {4, 5, 33}, 1), half = Tensor::filled(DType::f32, {2, 5, 33}, 1);
  const Tensor y = run_op("dropout", {whole, hyper_at(1, 1)}, dropout(0.5)).outputs[0];
  for (int64_t trip : {0, 1}) {
    RunOptions options;
    options.trip = trip;
    const Tensor part = run_op("dropout", {half, hyper_at(1, 1)}, dropout(0.5), options).outputs[0];
    for (int64_t i = 0; i < part.count(); ++i) ASSERT_EQ(part.at(i), y.at(trip * part.count() + i));
  }
}

TEST(Dropout, RateZeroIsTheIdentity) {
  const Tensor x = Tensor::random(DType::f32, {2, 3, 40}, 1);
  EXPECT_TRUE(run_op("dropout", {x, hyper_at(1, 1)}, dropout(0)).outputs[0].same_bytes(x));
}

}  // namespace
}  // namespace headroom::op_test
