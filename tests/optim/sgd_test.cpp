// SGD: its states, its nodes, and its kernels against torch's numbers (make_sgd.py) and the formula in double
// precision.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../ops_support/op_harness.h"
#include "ir/print.h"
#include "optim/optimizer.h"

namespace headroom::op_test {
namespace {

using Json = nlohmann::json;

Tensor scalars_of(double lr, double decay) {
  StepScalars scalars({});
  scalars.set("learning_rate", lr);
  scalars.set("weight_decay", decay);
  scalars.set_key(3, 1);
  Tensor hyper = Tensor::filled(DType::f32, {kHyperCount}, 0);
  std::copy(scalars.values().begin(), scalars.values().end(), hyper.as<float>());
  return hyper;
}

Attrs attrs_of(double momentum, bool nesterov, bool decay = true) {
  return {{"momentum", momentum}, {"nesterov", int64_t{nesterov}}, {"decay", int64_t{decay}}, {"tensor", int64_t{9}}};
}

// The update of one element.
struct Formula {
  double lr, decay, momentum;
  bool nesterov;
  void step(double g, double& w, double& buffer) const {
    g += decay * w;
    buffer = momentum * buffer + g;
    w -= lr * (nesterov ? g + momentum * buffer : buffer);
  }
};

TEST(Sgd, ReachesTheWeightsOfTorch) {
  std::ifstream file(HEADROOM_SOURCE_DIR "/tests/optim/sgd.json");
  const Json cases = Json::parse(file).at("cases");
  ASSERT_EQ(cases.size(), 4u);
  for (const Json& json : cases)
    for (const char* which : {"reference", "simd"}) {
      SCOPED_TRACE(which);
      const double momentum = json.at("momentum").get<double>();
      const auto first = json.at("weights").get<std::vector<double>>();
      const int64_t count = static_cast<int64_t>(first.size());
      Tensor w(DType::f32, {count}, first), buffer = Tensor::filled(DType::f32, {count}, 0);
      const Tensor hyper = scalars_of(json.at("lr").get<double>(), json.at("weight_decay").get<double>());
      for (const Json& gradient : json.at("gradients")) {
        const Tensor g(DType::f32, {count}, gradient.get<std::vector<double>>());
        std::vector<Tensor> in{w, g};
        if (momentum > 0) in.push_back(buffer);
        in.insert(in.end(), {hyper, Tensor(DType::f32, {1}, {1})});
        const RunResult found = run_op("sgd", in, attrs_of(momentum, json.at("nesterov").get<bool>()), {.only = which});
        w = found.outputs[0];
        if (momentum > 0) buffer = found.outputs[1];
      }
      const auto result = json.at("result").get<std::vector<double>>();
      const auto sums = json.at("momentum_buffer").get<std::vector<double>>();
      EXPECT_EQ(sums.empty(), momentum == 0);
      for (size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(w.at(static_cast<int64_t>(i)), result[i], 1e-6);
      for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(buffer.at(static_cast<int64_t>(i)), sums[i], 2e-6);
    }
}

// Odd lengths, the clip factor, weights without decay, and the copy.
TEST(Sgd, FollowsTheFormula) {
  for (const char* which : {"reference", "simd"})
    for (int64_t count : {1, 7, 1029})
      for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.9, true}}) {
        const Tensor w = Tensor::random(DType::f32, {count}, 1), g = Tensor::random(DType::f32, {count}, 2);
        const Tensor buffer = Tensor::random(DType::f32, {count}, 3), copy = Tensor::filled(DType::bf16, {count}, 0);
        std::vector<Tensor> in{w, g};
        if (momentum > 0) in.push_back(buffer);
        in.insert(in.end(), {scalars_of(0.1, 0.3), Tensor(DType::f32, {1}, {0.5}), copy});
        const auto outputs = run_op("sgd", in, attrs_of(momentum, nesterov, false), {.only = which}).outputs;
        const Formula formula{0.1, 0, momentum, nesterov};
        for (int64_t i = 0; i < count; ++i) {
          double expected = w.at(i), sum = buffer.at(i);
          formula.step(g.at(i) * 0.5, expected, sum);
          ASSERT_NEAR(outputs[0].at(i), expected, 3e-7) << which << " " << i;
          if (momentum > 0) {
            ASSERT_NEAR(outputs[1].at(i), sum, 3e-7);
          }
          ASSERT_EQ(outputs.back().as<uint16_t>()[i], bfloat16(outputs[0].as<float>()[i]).bits);
        }
      }
}

// A bf16 weight is rounded up or down, with the same random bits in both kernels, and correctly on average.
TEST(Sgd, RoundsNarrowWeightsByDraws) {
  constexpr int64_t kCount = 1 << 14;
  const Tensor w = Tensor::filled(DType::bf16, {kCount}, 1), g = Tensor::filled(DType::f32, {kCount}, -0.25);
  const std::vector<Tensor> in{w, g, scalars_of(0x1p-7, 0), Tensor(DType::f32, {1}, {1})};
  const Tensor drawn = run_op("sgd", in, attrs_of(0, false), {.only = "simd"}).outputs[0];
  EXPECT_TRUE(run_op("sgd", in, attrs_of(0, false), {.only = "reference"}).outputs[0].same_bytes(drawn));
  int64_t up = 0;
  for (int64_t i = 0; i < kCount; ++i) up += drawn.at(i) > 1;
  EXPECT_NEAR(static_cast<double>(up) / kCount, 0.25, 0.02);
}

TEST(Sgd, LeavesOutAStepWithoutAFactor) {
  const Tensor half = Tensor::filled(DType::f32, {5}, 0.5), gradient = Tensor::filled(DType::f32, {5}, NAN);
  for (const char* which : {"simd", "reference"}) {
    const std::vector<Tensor> in{half, gradient, half, scalars_of(0.1, 0.1), Tensor(DType::f32, {1}, {NAN})};
    for (const Tensor& output : run_op("sgd", in, attrs_of(0.9, false), {.only = which}).outputs)
      EXPECT_TRUE(output.same_bytes(half)) << which;
  }
}

TEST(Sgd, HasABufferWithMomentumOnly) {
  const Optimizer& sgd = find_optimizer("sgd");
  const Type type{DType::bf16, {Dim::of(3), Dim::of(4)}};
  EXPECT_TRUE(sgd.states(OptimizerSettings("sgd", ""), type, ParameterKind::matrix).empty());
  const auto states = sgd.states(OptimizerSettings("sgd", "momentum=0.9"), type, ParameterKind::matrix);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].name, "momentum_buffer");
  EXPECT_EQ(states[0].type, (Type{DType::f32, type.shape}));
}

TEST(Sgd, AppendsOneNodeForEachParameter) {
  Graph graph;
  const RegionId region = add_program(graph, "train_step");
  Builder build(graph, region, find_op);
  const auto tensor = [&](const char* name, Role role) {
    return build.persistent(name, Type{DType::f32, {Dim::of(4)}}, role);
  };
  UpdateInputs in;
  in.parameter = {tensor("norm.weight", Role::parameter), ParameterKind::vector};
  in.gradient = tensor("gradient", Role::gradient);
  in.hyper = build.persistent("hyper", Type{DType::f32, {Dim::of(kHyperCount)}}, Role::data);
  in.clip = build.persistent("clip", Type{DType::f32, {Dim::of(1)}}, Role::data);
  append_update(build, OptimizerSettings("sgd", "momentum=0.9"), in);
  ASSERT_EQ(graph.region(region).nodes.size(), 1u);
  const Node& node = graph.node(graph.region(region).nodes[0]);
  EXPECT_EQ(node.op->kind(), OpKind::update);
  EXPECT_EQ(graph.value(operand(node, "momentum_buffer")).name, "norm.weight.momentum_buffer");
  EXPECT_EQ(operand(node, "copy"), kNone);
  EXPECT_EQ(node.attrs.integer("decay"), 0);  // vectors do not
}

}  // namespace
}  // namespace headroom::op_test
