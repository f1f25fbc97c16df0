// An f32 weight with narrow operands: the same bits as with the weight rounded beforehand.
#include <gtest/gtest.h>

#include "../ops_support/op_harness.h"
#include "base/error.h"
#include "hwy/targets.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct Size {
  int64_t rows, ins, outs;
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.rows << " rows, " << size.ins << " -> " << size.outs;
}

class RoundedWeight : public ::testing::TestWithParam<Size> {
 protected:
  // Runs `op` with every implementation that supports the wide weight, which is input 1, and with a narrow weight, and
  // with those that are chosen, so that copies of weights change no bit.
  void expect_rounded(std::string_view op, const std::vector<Tensor>& wide, const Attrs& attrs, RunOptions options) {
    std::vector<Tensor> narrow = wide;
    narrow[1] = op_test::rounded(wide[1], wide[0].type().dtype);
    for (const char* implementation : {"rows", "amx", "onednn", "simd", "reference"}) {
      if (!op_test::accepts(op, wide, attrs, implementation, options.facts)) continue;
      SCOPED_TRACE(implementation);
      options.only = implementation;
      op_test::expect_same_bytes(op_test::run_op(op, wide, attrs, options).outputs[0],
                                 op_test::run_op(op, narrow, attrs, options).outputs[0]);
      ++compared_;
    }
    options.only = {};
    op_test::expect_same_bytes(op_test::run_op(op, wide, attrs, options).outputs[0],
                               op_test::run_op(op, narrow, attrs, options).outputs[0]);
  }

  // linear and linear_dx in every layout and result type, with the optional addends.
  void expect_all_rounded(const RunOptions& options) {
    const auto [rows, ins, outs] = GetParam();
    for (const char* layout : {"out_in", "in_out"})
      for (const auto& [narrow, result] :
           {std::pair(DType::bf16, "bf16"), {DType::bf16, "f32"}, {DType::f16, "f16"}, {DType::f16, "f32"}})
        for (const int64_t more : {0, 1}) {
          SCOPED_TRACE(fmt::format("{} {} {}", layout, result, more));
          const bool out_in = std::string_view(layout) == "out_in";
          const DType dtype = *parse_dtype(result);
          const Tensor w = Tensor::random(DType::f32, out_in ? std::vector{outs, ins} : std::vector{ins, outs}, 2, 0.3);
          const Tensor x = Tensor::random(narrow, {1, rows, ins}, 1), dy = Tensor::random(narrow, {1, rows, outs}, 3);
          Attrs attrs{{"layout", layout}, {"dtype", result}};
          std::vector<Tensor> forward{x, w}, backward{dy, w};
          if (more) {
            forward.push_back(Tensor::random(DType::f32, {outs}, 4));
            forward.push_back(Tensor::random(dtype, {1, rows, outs}, 5));
            backward.push_back(Tensor::random(dtype, {1, rows, ins}, 6));
          }
          Attrs dx = attrs;
          dx.set("addend", more);
          attrs.set("bias", more).set("residual", more);
          expect_rounded("linear", forward, attrs, options);
          expect_rounded("linear_dx", backward, dx, options);
        }
  }

  int compared_ = 0;
};

TEST_P(RoundedWeight, GivesTheBitsOfANarrowOne) {
  expect_all_rounded({});
  EXPECT_GT(compared_, 0);
}

TEST_P(RoundedWeight, GivesTheBitsOfANarrowOneOnOtherMachines) {
  for (const InstructionSet set : kInstructionSets) {
    if (set == InstructionSet::amx || instruction_set() < set) continue;
    SCOPED_TRACE(instruction_set_name(set));
    RunOptions options;
    options.facts.capabilities = capabilities_of(set);
    compared_ = 0;
    expect_all_rounded(options);
    EXPECT_GT(compared_, 0);
  }
}

TEST_P(RoundedWeight, StaysWholeBesideAnAdapter) {
  const auto [rows, ins, outs] = GetParam();
  const Tensor w = Tensor::random(DType::f32, {outs, ins}, 2, 0.3);
  const Tensor x = Tensor::random(DType::bf16, {1, rows, ins}, 1), p = Tensor::random(DType::bf16, {1, rows, 8}, 3),
               q = Tensor::random(DType::bf16, {outs, 8}, 4);
  expect_rounded("linear", {x, w, p, q}, {{"low_rank", int64_t{1}}}, {});
  const Tensor dy = Tensor::random(DType::bf16, {1, rows, outs}, 5), down = Tensor::random(DType::bf16, {8, ins}, 6);
  expect_rounded("linear_dx", {dy, w, p, down}, {{"low_rank", int64_t{1}}}, {});
}

INSTANTIATE_TEST_SUITE_P(Shapes, RoundedWeight,
                         ::testing::Values(Size{1, 1, 1}, Size{3, 64, 32}, Size{37, 70, 45}, Size{33, 2100, 34}));

TEST(RoundedWeightTargets, EveryVectorWidthRounds) {
  const int64_t supported = hwy::SupportedTargets();
  const Tensor x = Tensor::random(DType::bf16, {1, 30, 70}, 1), w = Tensor::random(DType::f32, {75, 70}, 2);
  RunOptions options;
  options.only = "simd";
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    op_test::expect_same_bytes(op_test::run_op("linear", {x, w}, {}, options).outputs[0],
                               op_test::run_op("linear", {x, op_test::rounded(w)}, {}, options).outputs[0]);
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(RoundedWeightRules, OnlyTheWeightMayBeWide) {
  const Tensor narrow(DType::bf16, {2, 3, 8}), wide(DType::f32, {2, 3, 8});
  const auto infer = [](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
    return op_test::infer_types(find_op(op), inputs, attrs);
  };
  EXPECT_EQ(infer("linear", {narrow, Tensor(DType::f32, {5, 8})}, {})[0].dtype, DType::bf16);
  EXPECT_EQ(infer("linear_dx", {narrow, Tensor(DType::f32, {8, 5})}, {})[0].dtype, DType::bf16);
  EXPECT_THROW(infer("linear", {wide, Tensor(DType::bf16, {5, 8})}, {}), InternalError);
  EXPECT_THROW(infer("linear_dw", {narrow, wide, Tensor(DType::f32, {8, 8})}, {}), InternalError);
}

}  // namespace
}  // namespace headroom
