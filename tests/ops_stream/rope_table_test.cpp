// Rotary tables against the published formulas in double precision.
#include <numbers>

#include "stream_support.h"

namespace headroom::op_test {
namespace {

// Llama 3.1's scaling by wavelength: kept below `short_end`, divided above `long_end`, interpolated in 1/wavelength.
double llama3_frequency(double f, double factor, double low, double high, double positions) {
  const double turns = positions * f / (2 * std::numbers::pi);  // in the original context
  if (turns > high) return f;
  if (turns < low) return f / factor;
  const double share = (turns - low) / (high - low);
  return f * share + f / factor * (1 - share);
}

void expect_table(const Attrs& attrs, const std::function<double(double)>& scale) {
  const Tensor table = run_op("rope_table", {}, attrs).outputs[0];
  const int64_t rows = attrs.integer("positions"), width = attrs.integer("head_dim");
  ASSERT_EQ(table.type().dims, (std::vector<int64_t>{rows, width}));
  for (int64_t p = 0; p < rows; ++p)
    for (int64_t i = 0; i < width / 2; ++i) {
      const double frequency =
          scale(std::pow(attrs.real("theta"), -2.0 * static_cast<double>(i) / static_cast<double>(width)));
      const double angle = static_cast<double>(p) * frequency;
      const double rounding = 2e-7 + 4e-7 * angle;  // a few f32 roundings of the angle
      ASSERT_NEAR(table.at(p * width + i), std::cos(angle), rounding) << p << " " << i;
      ASSERT_NEAR(table.at(p * width + width / 2 + i), std::sin(angle), rounding) << p << " " << i;
    }
}

TEST(RopeTable, Default) {
  expect_table({{"positions", int64_t{513}}, {"head_dim", int64_t{64}}, {"theta", 10000.0}},
               [](double f) { return f; });
  expect_table({{"positions", int64_t{3}}, {"head_dim", int64_t{2}}, {"theta", 500000.0}}, [](double f) { return f; });
}

TEST(RopeTable, Linear) {
  const Attrs attrs{{"positions", int64_t{300}},
                    {"head_dim", int64_t{48}},
                    {"theta", 10000.0},
                    {"scaling", "linear"},
                    {"factor", 4.0}};
  expect_table(attrs, [](double f) { return f / 4; });
}

TEST(RopeTable, Llama3) {
  const Attrs attrs{{"positions", int64_t{600}},
                    {"head_dim", int64_t{128}},
                    {"theta", 500000.0},
                    {"scaling", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_positions", int64_t{8192}}};
  expect_table(attrs, [](double f) { return llama3_frequency(f, 8, 1, 4, 8192); });
}

TEST(RopeTable, LongropeStretchesEachPairByItsFactor) {
  const Attrs attrs{{"positions", int64_t{300}}, {"head_dim", int64_t{6}},  {"theta", 10000.0},
                    {"scaling", "longrope"},     {"factors", "1,2.5,8.25"}, {"amplitude", 1.25}};
  const Tensor table = run_op("rope_table", {}, attrs).outputs[0];
  const double factors[] = {1, 2.5, 8.25};
  for (int64_t p = 0; p < 300; ++p)
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / 3) / factors[i];
      ASSERT_NEAR(table.at(p * 6 + i), 1.25 * std::cos(angle), 5e-7 + 5e-7 * angle);
      ASSERT_NEAR(table.at(p * 6 + 3 + i), 1.25 * std::sin(angle), 5e-7 + 5e-7 * angle);
    }
}

// An input provides the storage of the table; its old contents do not matter.
TEST(RopeTable, FillsGivenStorage) {
  const Attrs attrs{{"positions", int64_t{33}}, {"head_dim", int64_t{6}}, {"theta", 10000.0}};
  const Tensor storage = Tensor::random(DType::f32, {33, 6}, 1);
  expect_same_bytes(run_op("rope_table", {storage}, attrs).outputs[0], run_op("rope_table", {}, attrs).outputs[0]);
}

// The angle is one f32 product, its cosine and sine are rounded once.
TEST(RopeTable, AnglesAreRoundedAsHfDoes) {
  const Attrs attrs{{"positions", int64_t{5000}}, {"head_dim", int64_t{8}}, {"theta", 10000.0}};
  const Tensor table = run_op("rope_table", {}, attrs).outputs[0];
  for (int64_t i = 0; i < 4; ++i) {
    const float frequency = 1.0f / std::pow(10000.0f, static_cast<float>(2 * i) / 8.0f);
    const float angle = 4999.0f * frequency;
    EXPECT_NEAR(table.at(4999 * 8 + i), std::cos(static_cast<double>(angle)), 6e-8);
    EXPECT_NEAR(table.at(4999 * 8 + 4 + i), std::sin(static_cast<double>(angle)), 6e-8);
  }
}

}  // namespace
}  // namespace headroom::op_test
