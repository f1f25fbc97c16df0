// A backend outside the library plans and runs a block, with its own profile, alignment, scratch, capabilities, kernels
// and device (toy/).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "device/device.h"
#include "formats/json.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "ops/backend.h"
#include "ops/registry.h"
#include "planner/emit.h"
#include "runtime/executor.h"
#include "toy/toy.h"

namespace headroom {
namespace {

using testing::HasSubstr;

constexpr int64_t kRows = 6, kHidden = 40, kInner = 24;

// y = x + down(gelu(up(x)))
constexpr const char* kBlock = R"(graph "block" {
  persistent %0: f32[6,40] data "x"
  persistent %1: f32[24,40] parameter "up"
  persistent %2: f32[40,24] parameter "down"
  program forward {
    %3: f32[6,24] = linear(%0, %1)
    %4: f32[6,24] = gelu(%3)
    %5: f32[6,40] = linear(%4, %2)
    %6: f32[6,40] = add(%0, %5)
    yield %6
  }
}
)";

Profile toy_profile(int gears) {
  Json json{{"name", "toy"},
            {"device", "toy"},
            {"isa", gears},
            {"alignment", backends().find("toy")->alignment()},
            {"products", Json::array()},
            {"attention", Json::array()}};
  for (const char* dtype : {"f32", "bf16"}) {
    json["products"].push_back({{"dtype", dtype}, {"flops_per_second", 1e9}});
    json["attention"].push_back({{"dtype", dtype}, {"forward", 1e9}, {"backward", 1e9}});
  }
  for (const char* rate : {"stream", "optimizer", "softmax", "copy"})
    json[fmt::format("{}_bytes_per_second", rate)] = 1e9;
  return parse_profile(json.dump(), "toy.json");
}

Plan plan_block(const Profile& profile) {
  const Graph graph = parse_graph(kBlock, "block", find_op);
  verify_or_throw(graph, "the test");
  PlanRequest request;
  request.profile = profile;
  request.facts = profile.facts;
  Plan plan;
  plan.model = "block";
  plan.facts = request.facts;
  const Liveness liveness = analyze_liveness(graph, graph.bounds(), request.facts);
  AssignmentOptions options;
  options.alignment = request.facts.alignment;
  emit_programs(graph, graph.bounds(), liveness, assign_arenas(liveness, options), request, plan);
  return plan;
}

std::vector<float> numbers(int64_t count, float first) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::sin(first + 0.37f * static_cast<float>(i)));
  return out;
}

std::vector<double> expected(const std::vector<float>& x, const std::vector<float>& up,
                             const std::vector<float>& down) {
  std::vector<double> y;
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> inner;
    for (int64_t o = 0; o < kInner; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < kHidden; ++i)
        sum += static_cast<double>(x[static_cast<size_t>(row * kHidden + i)]) *
               static_cast<double>(up[static_cast<size_t>(o * kHidden + i)]);
      inner.push_back(sum * 0.5 * std::erfc(-sum / std::sqrt(2.0)));
    }
    for (int64_t o = 0; o < kHidden; ++o) {
      double sum = static_cast<double>(x[static_cast<size_t>(row * kHidden + o)]);
      for (int64_t i = 0; i < kInner; ++i)
        sum += inner[static_cast<size_t>(i)] * static_cast<double>(down[static_cast<size_t>(o * kInner + i)]);
      y.push_back(sum);
    }
  }
  return y;
}

TEST(ToyBackend, PlansWithItsAlignmentAndItsScratchRule) {
  const Plan plan = plan_block(toy_profile(3));
  int products = 0;
  for (const Instruction& instruction : plan.program("forward")->instructions) {
    for (const auto& operands : {instruction.inputs, instruction.outputs})
      for (const Operand& operand : operands) EXPECT_EQ(operand.offset % toy::kAlignment, 0);
    const bool product = op_name(*instruction.op) == "linear";
    products += product;
    EXPECT_EQ(instruction.scratch_bytes, product ? instruction.outputs[0].type.dims.back() * 8 : 0);
  }
  EXPECT_EQ(products, 2);
}

TEST(ToyBackend, RunsTheBlockByItsKernels) {
  for (const int gears : {1, 3}) {
    const Plan plan = plan_block(toy_profile(gears));
    const std::unique_ptr<Device> device = open_device("toy:0", plan.facts);
    Executor executor(plan, *device, nullptr);
    const std::vector<float> x = numbers(kRows * kHidden, 0), up = numbers(kInner * kHidden, 1),
                             down = numbers(kHidden * kInner, 2);
    executor.put<float>(executor.tensor("x"), x);
    executor.put<float>(executor.tensor("up"), up);
    executor.put<float>(executor.tensor("down"), down);
    ASSERT_TRUE(executor.run("forward", {}));
    std::vector<float> buffer(x.size());
    const std::span<const float> y = executor.get<float>(executor.result("forward", 0), buffer);
    const std::vector<double> wanted = expected(x, up, down);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), wanted[i], 1e-5) << gears;
  }
}

TEST(ToyBackend, RunsOnTheNullDeviceToo) {
  const Plan plan = plan_block(toy_profile(2));
  const std::unique_ptr<Device> device = open_device("null", plan.facts);
  EXPECT_TRUE(Executor(plan, *device, nullptr).run("forward", {}));
}

TEST(ToyBackend, ItsCapabilitiesHaveNames) {
  const Profile profile = toy_profile(3);
  EXPECT_EQ(profile.facts.capabilities.version(toy::kGears), 3);
  EXPECT_EQ(describe_capabilities(profile.facts), "3 gears");
  EXPECT_EQ(parse_profile(profile_json(profile), "again").facts.capabilities, profile.facts.capabilities);
  EXPECT_TRUE(profile.facts.capabilities.cover(toy_profile(2).facts.capabilities));
  EXPECT_FALSE(toy_profile(2).facts.capabilities.cover(profile.facts.capabilities));
  EXPECT_EQ(profile.facts.capabilities.shared_with(toy_profile(2).facts.capabilities),
            toy_profile(2).facts.capabilities);
  try {
    toy_profile(4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'isa' should be 1 to 3 gears"));
  }
}

TEST(ToyBackend, IsKnownByName) {
  EXPECT_EQ(device_kind("toy"), DeviceKind::accelerator);
  EXPECT_EQ(accelerator_label("toy:2"), "toy-2");
  EXPECT_THROW(device_kind("toy:x"), Error);
  EXPECT_THROW(device_kind("cpu:0"), Error);
  try {
    device_kind("tpu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.remedy()), HasSubstr("use cpu, cuda:0, toy:0, or null"));
  }
}

// Preparing a call of an op that the toy does not support is refused with the backend's name.
TEST(ToyBackend, HasNoKernelsButItsOwn) {
  const std::unique_ptr<Device> device = open_device("toy", toy_profile(1).facts);
  KernelSpec spec{"scale", {}, {{DType::f32, {4}, {}}}, {{DType::f32, {4}, {}}}, 0};
  try {
    device->prepare(spec);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("op scale has no toy kernel"));
  }
}

}  // namespace
}  // namespace headroom
