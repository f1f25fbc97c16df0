// Elementwise updates against the reference: every op of the table, every variant of its formula.
#include <cmath>

#include "cuda_ops/random.h"
#include "ops/update/table.h"

namespace headroom::update_on_cuda {
namespace {

using namespace op_test;

struct Case {
  const char* op;
  Attrs attrs;
};

std::vector<Case> cases() {
  const Attrs adam{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}};
  std::vector<Case> all{
      {"adamw", adam}, {"adam", adam}, {"adagrad", {{"eps", 1e-10}}}, {"lion", {{"beta1", 0.9}, {"beta2", 0.99}}}};
  all.push_back({"adamw", Attrs(adam).set("rate", 4.0)});
  all.push_back({"sophia", {{"beta1", 0.9}, {"beta2", 0.95}, {"rho", 4.0}}});
  for (const int64_t decoupled : {0, 1})
    all.push_back({"moments", {{"beta1", 0.9}, {"beta2", 0.95}, {"decoupled", decoupled}}});
  for (const double momentum : {0.0, 0.5})
    for (const int64_t flag : {0, 1}) {
      all.push_back({"rmsprop", {{"alpha", 0.9}, {"eps", 1e-3}, {"momentum", momentum}, {"centered", flag}}});
      if (momentum > 0 || flag == 0) all.push_back({"sgd", {{"momentum", momentum}, {"nesterov", flag}}});
    }
  for (Case& each : all) each.attrs.set("decay", int64_t{1}).set("tensor", int64_t{77});
  return all;
}

std::vector<Tensor> inputs(const Case& of, DType weight, int64_t count, double clip, bool copy) {
  std::vector<Tensor> all{Tensor::random(weight, {count}, 1), Tensor::random(DType::f32, {count}, 2)};
  for (size_t k = 0; k < UpdatePlan(of.op, of.attrs).states; ++k) {
    all.push_back(Tensor::random(DType::f32, {count}, 3 + k, k == 0 ? 0.5 : 0.1));
    for (int64_t i = 0; i < count; ++i)
      all.back().set(i, (k == 0 ? 1.5 : 0.5) + all.back().at(i));  // squares are above the mean's
  }
  all.push_back(hyper_of(1, 3));
  all.back().set(kOwnScalar[2], 1.3);
  all.back().set(kOwnScalar[3], 1e-3);
  all.push_back(Tensor::filled(DType::f32, {1}, clip));
  if (copy) all.push_back(Tensor::random(DType::bf16, {count}, 9));
  return all;
}

TEST(CudaUpdate, AgreesWithTheReference) {
  for (const Case& of : cases())
    for (const int64_t count : {1, 6, 1027, 5000})
      for (const bool copy : {false, true}) {
        SCOPED_TRACE(of.op);
        const std::vector<Tensor> in = inputs(of, DType::f32, count, 0.7, copy);
        RunOptions plain;
        plain.only = "reference";
        const RunResult expected = run_op(of.op, in, of.attrs, plain), found = run_cuda_op(of.op, in, of.attrs);
        for (size_t i = 0; i < expected.outputs.size() - copy; ++i)
          expect_close(found.outputs[i], expected.outputs[i], 2e-6, 2e-5);
        if (copy) expect_close(found.outputs.back(), found.outputs[0], 0, 4e-3);
      }
}

TEST(CudaUpdate, LeavesOutAStepWhoseNormIsNotFinite) {
  for (const Case& of : cases())
    for (const DType weight : kFloats) {
      const std::vector<Tensor> in = inputs(of, weight, 100, NAN, false);
      const RunResult found = run_cuda_op(of.op, in, of.attrs);
      expect_same_bytes(found.outputs[0], in[0]);
      for (size_t k = 1; k < found.outputs.size(); ++k) expect_same_bytes(found.outputs[k], in[k + 1]);
    }
}

// The copy's storage may be a window that was not loaded.
TEST(CudaUpdate, ASkippedStepRefreshesTheCopy) {
  for (const Case& of : cases()) {
    const std::vector<Tensor> in = inputs(of, DType::f32, 1027, NAN, true);
    expect_same_bytes(run_cuda_op(of.op, in, of.attrs).outputs.back(), rounded(in[0], DType::bf16));
  }
}

// A pass that estimates the curvature changes only its state.
TEST(CudaUpdate, EstimatesTheCurvature) {
  const Case of{"sophia",
                {{"beta1", 0.9}, {"beta2", 0.95}, {"rho", 4.0}, {"decay", int64_t{1}}, {"tensor", int64_t{77}}}};
  const UpdatePlan plan(of.op, of.attrs);
  for (const DType weight : kFloats) {
    std::vector<Tensor> in = inputs(of, weight, 1027, 0.7, false);
    in[plan.hyper].set(kDrawnLabels, 37);
    const RunResult expected = run_op(of.op, in, of.attrs), found = run_cuda_op(of.op, in, of.attrs);
    expect_same_bytes(found.outputs[0], in[0]);
    expect_same_bytes(found.outputs[1], in[UpdateOpInputs::states]);
    expect_close(found.outputs[2], expected.outputs[2], 1e-6, 1e-5);
    EXPECT_FALSE(found.outputs[2].same_bytes(in[UpdateOpInputs::states + 1]));
  }
}

// f32 rounding may cross the threshold between two codes.
TEST(CudaUpdate, BlocksAgreeWithTheReference) {
  const Attrs adam{{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"decay", int64_t{1}}, {"tensor", int64_t{77}}};
  for (const Case& of : {Case{"adamw_8bit", adam}, Case{"lion_8bit", adam}})
    for (const int64_t count : {1, 256, 300, 5000}) {
      SCOPED_TRACE(of.op);
      std::vector<Tensor> in{Tensor::random(DType::f32, {count}, 1), Tensor::random(DType::f32, {count}, 2)};
      for (size_t k = 0; k < UpdatePlan(of.op, of.attrs).states; ++k) {
        in.push_back(Tensor(DType::u8, {count}));
        for (int64_t i = 0; i < count; ++i) in.back().set(i, static_cast<double>((i * 7 + 3) % 256));
        in.push_back(Tensor::random(DType::f32, {(count + 255) / 256}, 4, 0.1));
        for (int64_t i = 0; i < in.back().count(); ++i) in.back().set(i, 0.2 + in.back().at(i));
      }
      in.push_back(hyper_of(1, 3));
      in.push_back(Tensor::filled(DType::f32, {1}, 0.7));
      const RunResult expected = run_op(of.op, in, of.attrs), found = run_cuda_op(of.op, in, of.attrs);
      expect_close(found.outputs[0], expected.outputs[0], 1e-6, 1e-5);
      for (size_t k = 1; k < found.outputs.size(); ++k)
        for (int64_t i = 0; i < found.outputs[k].count(); ++i)
          ASSERT_NEAR(found.outputs[k].at(i), expected.outputs[k].at(i), k % 2 == 1 ? 1 : 1e-6);
    }
}

}  // namespace
}  // namespace headroom::update_on_cuda
