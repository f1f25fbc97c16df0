// Products of 8-bit activations with integer codes: the formula in f64, every kernel with the bits of the plain loops
// whatever the number of rows, and their distance from products with the decoded weight.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../ops_support/coded_tensor.h"
#include "base/error.h"
#include "hwy/targets.h"
#include "layer_size.h"
#include "ops/linear/int8_blocks.h"

namespace headroom {
namespace {

using namespace op_test;

constexpr Storage kInt8Wide{96, 8, DType::f32, CodeTable::integer};

Attrs attrs_of(bool bias = false, bool residual = false) {
  Attrs attrs{{"multiply", std::string(kMultiplyInt8Blocks)}};
  if (bias) attrs.set("bias", int64_t{1});
  if (residual) attrs.set("residual", int64_t{1});
  return attrs;
}

class Int8Blocks : public ::testing::TestWithParam<LayerSize> {
 protected:
  std::vector<Storage> storages() const {
    std::vector<Storage> fitting;
    const Storage per_row{static_cast<int32_t>(GetParam().ins), 8, DType::f32, CodeTable::integer};
    for (const Storage& storage : {kInt8Groups, kInt8Wide, kInt4, kInt4Wide, per_row})
      if (has_int8_blocks(storage, GetParam().ins)) fitting.push_back(storage);
    return fitting;
  }
};

TEST_P(Int8Blocks, EveryKernelGivesTheBitsOfPlainLoops) {
  const auto [rows, ins, outs] = GetParam();
  for (const Storage& storage : storages())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(fmt::format("{} bits in blocks of {}, {}", storage.payload_bits, storage.block, dtype_name(dtype)));
      const Coded w = coded(Tensor::random(DType::f32, {outs, ins}, 2, 0.3), storage);
      const std::vector<Tensor> inputs{Tensor::random(dtype, {1, rows, ins}, 1), w.codes,
                                       Tensor::random(DType::f32, {outs}, 4),
                                       Tensor::random(dtype, {1, rows, outs}, 5)};
      const Attrs attrs = attrs_of(true, true);
      const Tensor wanted = run_op("linear", inputs, attrs, {.only = "reference"}).outputs[0];
      for (const char* kernel : {"rows", "amx", "onednn", "int8", "simd"})
        EXPECT_FALSE(accepts("linear", inputs, attrs, kernel)) << kernel;
      if (!accepts("linear", inputs, attrs, "int8-blocks")) continue;
      expect_same_bytes(run_op("linear", inputs, attrs, {.only = "int8-blocks"}).outputs[0], wanted);
    }
}

// The bits of a row do not depend on the rows beside it.
TEST_P(Int8Blocks, ARowHasTheBitsThatItHasAlone) {
  const auto [rows, ins, outs] = GetParam();
  const Coded w = coded(Tensor::random(DType::f32, {outs, ins}, 2, 0.3), kInt8Groups);
  const Tensor x = Tensor::random(DType::f32, {1, rows, ins}, 1);
  const Tensor all = run_op("linear", {x, w.codes}, attrs_of()).outputs[0];
  for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
    Tensor one(DType::f32, {1, 1, ins});
    for (int64_t i = 0; i < ins; ++i) one.set(i, x.at(row * ins + i));
    const Tensor alone = run_op("linear", {one, w.codes}, attrs_of()).outputs[0];
    for (int64_t i = 0; i < outs; ++i) ASSERT_EQ(alone.at(i), all.at(row * outs + i)) << "row " << row;
  }
}

TEST_P(Int8Blocks, AGroupGivesTheBitsOfItsMembers) {
  const auto [rows, ins, outs] = GetParam();
  const Tensor x = Tensor::random(DType::bf16, {1, rows, ins}, 1);
  const Coded a = coded(Tensor::random(DType::f32, {outs, ins}, 2, 0.3), kInt4),
              b = coded(Tensor::random(DType::f32, {outs + 3, ins}, 3, 0.3), kInt4);
  const Tensor p = Tensor::random(DType::f32, {outs}, 4), q = Tensor::random(DType::f32, {outs + 3}, 5);
  const std::vector<Tensor> found = run_op("linear_group", {x, a.codes, b.codes, p, q}, attrs_of(true)).outputs;
  expect_same_bytes(found[0], run_op("linear", {x, a.codes, p}, attrs_of(true)).outputs[0]);
  expect_same_bytes(found[1], run_op("linear", {x, b.codes, q}, attrs_of(true)).outputs[0]);
}

// Rounding x to 8 bits moves an element by at most half a step of its block.
TEST_P(Int8Blocks, IsNearTheProductWithTheDecodedWeight) {
  const auto [rows, ins, outs] = GetParam();
  for (const Storage& storage : storages()) {
    const Coded w = coded(Tensor::random(DType::f32, {outs, ins}, 2, 0.3), storage);
    const Tensor x = Tensor::random(DType::f32, {1, rows, ins}, 1);
    const Tensor found = run_op("linear", {x, w.codes}, attrs_of()).outputs[0];
    for (int64_t row = 0; row < rows; row += 3)
      for (int64_t out = 0; out < outs; ++out) {
        double exact = 0, bound = 1e-4;
        for (int64_t first = 0; first < ins; first += kCodesBlock) {
          double largest = 0, weights = 0;
          for (int64_t i = first; i < first + kCodesBlock; ++i) {
            exact += x.at(row * ins + i) * w.decoded.at(out * ins + i);
            largest = std::max(largest, std::abs(x.at(row * ins + i)));
            weights += std::abs(w.decoded.at(out * ins + i));
          }
          bound += largest / 127 * 0.501 * weights;
        }
        ASSERT_NEAR(found.at(row * outs + out), exact, bound) << "row " << row << ", column " << out;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Int8Blocks,
                         ::testing::Values(LayerSize{1, 32, 1}, LayerSize{1, 96, 9}, LayerSize{3, 128, 70},
                                           LayerSize{4, 768, 40}, LayerSize{5, 384, 33}, LayerSize{24, 64, 33},
                                           LayerSize{13, 1152, 37}, LayerSize{253, 64, 34}));

// Each of 32 codes of x is 127 or less, and so are those of w: the formula with whole numbers.
TEST(Int8BlocksFormula, SumsTheProductsOfCodesInEachBlock) {
  const int64_t ins = 64;
  Tensor x(DType::f32, {1, 1, ins});
  for (int64_t i = 0; i < ins; ++i) x.set(i, i % 32 == 7 ? 127 : static_cast<double>((i * 37) % 101) - 50);
  for (int64_t i = 32; i < ins; ++i) x.set(i, x.at(i) * 0.5);
  const Coded w = coded(Tensor::random(DType::f32, {3, ins}, 2, 0.3), kInt8Groups);
  const Tensor y = run_op("linear", {x, w.codes}, attrs_of()).outputs[0];
  for (int64_t out = 0; out < 3; ++out) {
    double wanted = 0;
    for (int64_t i = 0; i < ins; ++i) wanted += x.at(i) * w.decoded.at(out * ins + i);
    EXPECT_NEAR(y.at(out), wanted, std::abs(wanted) * 1e-6 + 1e-5);  // x is exact in 8 bits
  }
}

TEST(Int8BlocksFormula, ARowThatIsNotFiniteGivesNanAndNoOther) {
  const Coded w = coded(Tensor::random(DType::f32, {9, 64}, 2, 0.3), kInt8Groups);
  for (const int64_t rows : {3, 8})
    for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      Tensor x = Tensor::random(DType::f32, {1, rows, 64}, 1);
      x.set(64 + 40, bad);
      const Tensor y = run_op("linear", {x, w.codes}, attrs_of()).outputs[0];
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t out = 0; out < 9; ++out) EXPECT_EQ(std::isnan(y.at(row * 9 + out)), row == 1);
    }
}

TEST(Int8BlocksTargets, EveryVectorWidthGivesTheSameBits) {
  const int64_t supported = hwy::SupportedTargets();
  for (const Storage& storage : {kInt8Groups, kInt4Wide})
    for (const int64_t rows : {2, 17}) {
      const Coded w = coded(Tensor::random(DType::f32, {45, 384}, 2, 0.3), storage);
      const Tensor x = Tensor::random(DType::f32, {1, rows, 384}, 1);
      const Tensor wanted = run_op("linear", {x, w.codes}, attrs_of(), {.only = "reference"}).outputs[0];
      for (const auto& [target, set] : {std::pair<int64_t, InstructionSet>{HWY_AVX3, InstructionSet::avx512_bf16},
                                        {HWY_AVX3, InstructionSet::avx512},
                                        {HWY_AVX2, InstructionSet::avx2}}) {
        if ((supported & target) == 0 || set > instruction_set()) continue;
        SCOPED_TRACE(fmt::format("{} rows, {}", rows, instruction_set_name(set)));
        hwy::SetSupportedTargetsForTest(target);
        RunOptions options{.only = "int8-blocks"};
        options.facts.capabilities = capabilities_of(set);  // without AMX
        expect_same_bytes(run_op("linear", {x, w.codes}, attrs_of(), options).outputs[0], wanted);
      }
      hwy::SetSupportedTargetsForTest(0);
    }
}

TEST(Int8BlocksRules, OnlyWholeNumbersInMultiplesOf32MeetThem) {
  EXPECT_TRUE(has_int8_blocks(kInt8Groups, 64));
  EXPECT_FALSE(has_int8_blocks(kNf4, 64));
  EXPECT_FALSE(has_int8_blocks({}, 64));
  EXPECT_FALSE(has_int8_blocks({24, 8, DType::f32, CodeTable::integer}, 96));
  EXPECT_FALSE(has_int8_blocks({96, 8, DType::f32, CodeTable::integer}, 128));
  const Tensor x(DType::f32, {1, 2, 64}), p(DType::f32, {1, 2, 8}), q(DType::f32, {8, 8});
  const Tensor w(ConcreteType{DType::f32, {8, 64}, kInt8Groups}), nf4(ConcreteType{DType::f32, {8, 64}, kNf4});
  EXPECT_NO_THROW(infer_types(find_op("linear"), {x, w}, attrs_of()));
  EXPECT_THROW(infer_types(find_op("linear"), {x, nf4}, attrs_of()), InternalError);
  Attrs low_rank = attrs_of();
  low_rank.set("low_rank", int64_t{1});
  EXPECT_THROW(infer_types(find_op("linear"), {x, w, p, q}, low_rank), InternalError);
}

}  // namespace
}  // namespace headroom
