// A weight in blocks of codes: bitwise the result of the decoded weight, in every implementation that packs it; sums of
// few rows and of oneDNN agree to rounding.
#include <gtest/gtest.h>

#include "../ops_support/coded_tensor.h"
#include "base/error.h"
#include "hwy/targets.h"
#include "layer_size.h"

namespace headroom {
namespace {

using namespace op_test;

void expect_rounded(const Tensor& found, const Tensor& expected) {
  const bool narrow = found.type().dtype == DType::bf16;
  expect_close(found, expected, narrow ? 3e-2 : 1e-3, narrow ? 1.0 / 64 : 1e-4);
}

class CodedWeight : public ::testing::TestWithParam<LayerSize> {
 protected:
  // Runs `op` with both weights as input 1, with every implementation that supports codes.
  void expect_same(std::string_view op, std::vector<Tensor> inputs, const Coded& weight, const Attrs& attrs,
                   RunOptions options) {
    std::vector<Tensor> plain = inputs;
    inputs[1] = weight.codes;
    plain[1] = weight.decoded;
    for (const char* implementation : {"rows", "amx", "onednn", "simd", "reference"}) {
      if (!op_test::accepts(op, inputs, attrs, implementation, options.facts)) continue;
      SCOPED_TRACE(implementation);
      options.only = implementation;
      const Tensor found = run_op(op, inputs, attrs, options).outputs[0];
      if (std::string_view(implementation) != "onednn" && std::string_view(implementation) != "rows")
        expect_same_bytes(found, run_op(op, plain, attrs, options).outputs[0]);
      else
        expect_rounded(found, run_op(op, plain, attrs, {.only = "reference", .facts = options.facts}).outputs[0]);
      ++compared_;
    }
  }

  // linear and linear_dx in both layouts with operands of `dtype`.
  void expect_all_same(const Storage& storage, DType dtype, const RunOptions& options) {
    const auto [rows, ins, outs] = GetParam();
    for (const char* layout : {"out_in", "in_out"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", code_table_name(storage.codes), dtype_name(dtype), layout));
      const bool out_in = std::string_view(layout) == "out_in";
      const Coded w =
          coded(Tensor::random(DType::f32, out_in ? std::vector{outs, ins} : std::vector{ins, outs}, 2, 0.3), storage);
      const Tensor x = Tensor::random(dtype, {1, rows, ins}, 1), dy = Tensor::random(dtype, {1, rows, outs}, 3);
      const Tensor bias = Tensor::random(DType::f32, {outs}, 4), residual = Tensor::random(dtype, {1, rows, outs}, 5);
      expect_same("linear", {x, w.codes, bias, residual}, w,
                  {{"layout", layout}, {"bias", int64_t{1}}, {"residual", int64_t{1}}}, options);
      expect_same("linear_dx", {dy, w.codes, Tensor::random(dtype, {1, rows, ins}, 6)}, w,
                  {{"layout", layout}, {"addend", int64_t{1}}}, options);
    }
  }

  int compared_ = 0;
};

TEST_P(CodedWeight, GivesTheBitsOfTheDecodedOne) {
  const Storage per_row{static_cast<int32_t>(GetParam().ins), 8, DType::f32, CodeTable::integer};
  for (const Storage& storage : {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups, per_row})
    for (const DType dtype : {DType::f32, DType::bf16}) expect_all_same(storage, dtype, {});
  EXPECT_GT(compared_, 0);
}

TEST_P(CodedWeight, GivesTheBitsOfTheDecodedOneOnOtherMachines) {
  for (const InstructionSet set : kInstructionSets) {
    if (set == InstructionSet::amx || instruction_set() < set) continue;
    SCOPED_TRACE(instruction_set_name(set));
    RunOptions options;
    options.facts.capabilities = capabilities_of(set);
    for (const DType dtype : {DType::f32, DType::bf16}) expect_all_same(kNf4, dtype, options);
  }
}

TEST_P(CodedWeight, StaysCodedBesideAnAdapter) {
  const auto [rows, ins, outs] = GetParam();
  const Coded w = coded(Tensor::random(DType::f32, {outs, ins}, 2, 0.3), kNf4);
  const Tensor x = Tensor::random(DType::f32, {1, rows, ins}, 1), p = Tensor::random(DType::f32, {1, rows, 8}, 3),
               q = Tensor::random(DType::f32, {outs, 8}, 4);
  expect_same("linear", {x, w.codes, p, q}, w, {{"low_rank", int64_t{1}}}, {});
  const Tensor dy = Tensor::random(DType::f32, {1, rows, outs}, 5), down = Tensor::random(DType::f32, {8, ins}, 6);
  expect_same("linear_dx", {dy, w.codes, p, down}, w, {{"low_rank", int64_t{1}}}, {});
}

INSTANTIATE_TEST_SUITE_P(Shapes, CodedWeight,
                         ::testing::Values(LayerSize{1, 1, 1}, LayerSize{3, 64, 32}, LayerSize{1, 512, 70},
                                           LayerSize{8, 128, 37}, LayerSize{37, 70, 45}, LayerSize{33, 2100, 34}));

TEST(CodedWeightTargets, EveryVectorWidthDecodesAlike) {
  const int64_t supported = hwy::SupportedTargets();
  const Storage per_row{128, 8, DType::f32, CodeTable::integer};
  for (const Storage& storage : {kNf4, kDoubled, kFp4, kInt4, kInt4Wide, kInt8Groups, per_row}) {
    const Coded w = coded(Tensor::random(DType::f32, {37, 128}, 2, 0.3), storage);
    for (const int64_t rows : {1, 3, 30}) {
      const Tensor x = Tensor::random(DType::f32, {1, rows, 128}, 1);
      const Tensor wanted = run_op("linear", {x, w.decoded}, {}, {.only = "reference"}).outputs[0];
      for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
        if ((supported & target) == 0) continue;
        SCOPED_TRACE(fmt::format("{} rows, {}", rows, hwy::TargetName(target)));
        hwy::SetSupportedTargetsForTest(target);
        expect_rounded(run_op("linear", {x, w.codes}, {}, {.only = rows <= 8 ? "rows" : "simd"}).outputs[0], wanted);
      }
      hwy::SetSupportedTargetsForTest(0);
    }
  }
}

TEST(CodedWeightRules, OnlyTheWeightOfAnF32LayerMayBeCodes) {
  const Tensor x(DType::f32, {2, 3, 64}), w(ConcreteType{DType::f32, {8, 64}, kNf4}), dy(DType::f32, {2, 3, 8});
  EXPECT_EQ(op_test::infer_types(find_op("linear"), {x, w}, {})[0].dims, (std::vector<int64_t>{2, 3, 8}));
  EXPECT_EQ(op_test::infer_types(find_op("linear_dx"), {dy, w}, {})[0].dims, (std::vector<int64_t>{2, 3, 64}));
  EXPECT_THROW(op_test::infer_types(find_op("linear"), {Tensor(ConcreteType{DType::f32, {2, 3, 64}, kNf4}), w}, {}),
               InternalError);
  EXPECT_THROW(op_test::infer_types(find_op("linear"), {x, Tensor(ConcreteType{DType::bf16, {8, 64}, kNf4})}, {}),
               InternalError);
  EXPECT_THROW(op_test::infer_types(find_op("linear_dw"), {x, dy, w}, {}), InternalError);
}

}  // namespace
}  // namespace headroom
