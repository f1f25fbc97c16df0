// A group of linear layers against the separate layers.
#include <gtest/gtest.h>

#include "../ops_support/coded_tensor.h"
#include "base/error.h"
#include "hwy/targets.h"
#include "ops/linear_group/member_calls.h"

namespace headroom {
namespace {

using op_test::RunOptions;
using op_test::Tensor;

struct GroupCase {
  int64_t rows, ins;
  std::vector<int64_t> outs;
};

std::ostream& operator<<(std::ostream& out, const GroupCase& c) {
  return out << fmt::format("{} rows {} -> {}", c.rows, c.ins, fmt::join(c.outs, ","));
}

std::vector<Tensor> group_inputs(const GroupCase& c, DType dtype, bool out_in, bool bias) {
  std::vector<Tensor> inputs{Tensor::random(dtype, {1, c.rows, c.ins}, 1)};
  for (size_t i = 0; i < c.outs.size(); ++i)
    inputs.push_back(Tensor::random(dtype, {out_in ? c.outs[i] : c.ins, out_in ? c.ins : c.outs[i]}, 2 + i, 0.5));
  for (size_t i = 0; bias && i < c.outs.size(); ++i) inputs.push_back(Tensor::random(DType::f32, {c.outs[i]}, 20 + i));
  return inputs;
}

// The group by `implementation` has the same bits as each layer by `single`.
void expect_layers(const std::vector<Tensor>& inputs, const Attrs& attrs, const char* implementation,
                   const char* single) {
  RunOptions options, one;
  options.only = implementation;
  one.only = single;
  const std::vector<Tensor> found = op_test::run_op("linear_group", inputs, attrs, options).outputs;
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}, layer {}", implementation, i));
    std::vector<Tensor> own{inputs[0], inputs[1 + i]};
    if (attrs.integer("bias") != 0) own.push_back(inputs[1 + found.size() + i]);
    op_test::expect_same_bytes(found[i], op_test::run_op("linear", own, attrs, one).outputs[0]);
  }
}

// Calls body(inputs, attrs) for every dtype, layout and ending.
template <typename Body>
void each_group(const GroupCase& c, const Body& body) {
  for (const auto& [dtype, result] :
       {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::bf16), std::pair(DType::bf16, DType::f32)})
    for (const bool out_in : {true, false})
      for (const bool bias : {false, true}) {
        SCOPED_TRACE(fmt::format("{} to {}, out_in {}, bias {}", dtype_name(dtype), dtype_name(result), out_in, bias));
        body(group_inputs(c, dtype, out_in, bias), Attrs{{"layout", out_in ? "out_in" : "in_out"},
                                                         {"bias", int64_t{bias}},
                                                         {"residual", int64_t{0}},
                                                         {"dtype", std::string(dtype_name(result))}});
      }
}

class LinearGroup : public ::testing::TestWithParam<GroupCase> {};

TEST_P(LinearGroup, HasTheBitsOfItsLayers) {
  for (int team : {1, 3}) {
    set_threads(team);
    each_group(GetParam(), [&](const std::vector<Tensor>& inputs, const Attrs& attrs) {
      if (op_test::accepts("linear_group", inputs, attrs, "rows")) expect_layers(inputs, attrs, "rows", "rows");
      expect_layers(inputs, attrs, "each", "");
      expect_layers(inputs, attrs, "reference", "reference");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearGroup,
                         ::testing::Values(GroupCase{1, 1, {1}}, GroupCase{1, 65, {3, 1}},
                                           GroupCase{1, 100, {200, 70, 70}}, GroupCase{1, 96, {1, 513, 2, 64}},
                                           GroupCase{2, 33, {5, 130}}, GroupCase{7, 70, {75, 9, 11}},
                                           GroupCase{40, 48, {96, 33}}));

TEST(LinearGroupTargets, EveryVectorWidthHasTheBitsOfItsLayers) {
  if (instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "the machine has no AVX2";
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_NEON}}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    for (const int64_t rows : {1, 3})
      each_group({rows, 70, {130, 75, 20}}, [&](const std::vector<Tensor>& inputs, const Attrs& attrs) {
        expect_layers(inputs, attrs, "rows", "rows");
      });
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(LinearGroupKernels, FewRowsReadAllWeightsAtOnce) {
  if (instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "the machine has no AVX2";
  const auto chosen = [](int64_t rows) {
    return op_test::run_op("linear_group", group_inputs({rows, 64, {32, 32}}, DType::bf16, true, false)).implementation;
  };
  EXPECT_EQ(chosen(8), "rows");
  EXPECT_EQ(chosen(9), "each");
}

TEST(LinearGroupKernels, CodedWeightsHaveTheBitsOfTheirLayers) {
  const Storage per_row{96, 8, DType::f32, CodeTable::integer};
  for (int team : {1, 3})
    for (const Storage& storage : {op_test::kInt4, per_row})
      for (const DType dtype : {DType::f32, DType::bf16})
        for (const int64_t rows : {1, 2, 3, 4, 5, 8}) {
          SCOPED_TRACE(fmt::format("{} rows, {} bits, {}", rows, storage.payload_bits, dtype_name(dtype)));
          set_threads(team);
          std::vector<Tensor> inputs{Tensor::random(dtype, {1, rows, 96}, 1)};
          for (const int64_t outs : {50, 9, 24})
            inputs.push_back(op_test::coded(Tensor::random(DType::f32, {outs, 96}, 2 + outs, 0.3), storage).codes);
          for (const int64_t outs : {50, 9, 24}) inputs.push_back(Tensor::random(DType::f32, {outs}, 20 + outs));
          const Attrs attrs{{"bias", int64_t{1}}};
          if (!op_test::accepts("linear_group", inputs, attrs, "rows")) continue;
          expect_layers(inputs, attrs, "rows", "rows");
          EXPECT_EQ(op_test::run_op("linear_group", inputs, attrs).implementation, "rows");
        }
}

// With the scratch of the largest layer, a smaller one could get a kernel that it does not get alone.
TEST(LinearGroupKernels, EachLayerHasTheScratchThatItHasByItself) {
  for (const InstructionSet set : kInstructionSets)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const GroupCase& c : {GroupCase{40, 48, {96, 33}}, GroupCase{300, 64, {8, 1024, 200}}}) {
        DeviceFacts facts = op_test::host_facts();
        facts.capabilities = capabilities_of(set);
        const std::vector<Tensor> inputs = group_inputs(c, dtype, true, false);
        const KernelSpec group = op_test::spec_of("linear_group", inputs, {}, facts);
        for (size_t i = 0; i < c.outs.size(); ++i)
          EXPECT_EQ(member_spec(group, i, facts).scratch_bytes,
                    op_test::spec_of("linear", {inputs[0], inputs[1 + i]}, {}, facts).scratch_bytes)
              << c << ", layer " << i << ", " << instruction_set_name(set);
      }
}

TEST(LinearGroupRules, RejectWhatDoesNotFit) {
  const Tensor x(DType::f32, {2, 3, 8}), w(DType::f32, {5, 8}), bias(DType::f32, {5});
  const auto infer = [](const std::vector<Tensor>& inputs, const Attrs& attrs) {
    return op_test::infer_types(find_op("linear_group"), inputs, attrs);
  };
  EXPECT_EQ(infer({x, w, w, w}, {})[2].dims, (std::vector<int64_t>{2, 3, 5}));
  EXPECT_EQ(infer({x, w, w, bias, bias}, {{"bias", int64_t{1}}}).size(), 2u);
  EXPECT_THROW(infer({}, {}), InternalError);
  EXPECT_THROW(infer({x}, {}), InternalError);
  EXPECT_THROW(infer({x, w, w, w, w, w}, {}), InternalError);
  EXPECT_THROW(infer({x, w, w, bias}, {{"bias", int64_t{1}}}), InternalError);
  EXPECT_THROW(infer({x, w, Tensor(DType::f32, {5, 7})}, {}), InternalError);
  EXPECT_THROW(infer({x, w, Tensor(DType::bf16, {5, 8})}, {}), InternalError);
  EXPECT_THROW(infer({x, w, w}, {{"residual", int64_t{1}}}), InternalError);
  EXPECT_THROW(infer({x, w, w}, {{"low_rank", int64_t{1}}}), InternalError);
}

TEST(LinearGroupRules, WorkCountsTheInputOnce) {
  const Tensor x(DType::bf16, {2, 3, 8}), w(DType::bf16, {5, 8}), u(DType::bf16, {7, 8});
  const KernelSpec spec = op_test::spec_of("linear_group", {x, w, u}, {}, op_test::host_facts());
  const Work work = find_op("linear_group").work(spec.call());
  EXPECT_EQ(work.flops, 2.0 * 6 * 12 * 8);
  EXPECT_EQ(work.bytes, 2.0 * (6 * 8 + 12 * 8 + 6 * 12));
}

}  // namespace
}  // namespace headroom
