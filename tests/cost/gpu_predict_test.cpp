// Predicted seconds on GPUs: queued launches, operands that take longer to load than to multiply, and the sums that
// every chunk of the loss reads and writes.
#include <gtest/gtest.h>

#include "cost/predict.h"
#include "formats/json.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr double kRate = 1e14, kBytes = 1e12, kLaunch = 1e-5;

// A GPU with round numbers: all products have one rate.
Json gpu_json() {
  Json json{
      {"name", "gpu"}, {"device", "cuda"}, {"isa", 90}, {"products", Json::array()}, {"attention", Json::array()}};
  for (const char* dtype : {"f32", "bf16"}) {
    json["products"].push_back(
        {{"dtype", dtype}, {"rows", 1024}, {"outs", 1024}, {"ins", 1024}, {"flops_per_second", kRate}});
    json["attention"].push_back({{"dtype", dtype}, {"forward", kRate}, {"backward", kRate}});
  }
  for (const char* rate : {"stream", "optimizer", "softmax", "copy"})
    json[fmt::format("{}_bytes_per_second", rate)] = kBytes;
  json["launch_seconds"] = kLaunch;
  return json;
}

Profile gpu() { return parse_profile(gpu_json().dump(), "gpu"); }

double linear_seconds(const Profile& profile, int64_t rows, int64_t outs, int64_t ins, DType weight = DType::bf16,
                      DType x = DType::bf16) {
  const std::vector<ConcreteType> in{{x, {rows, ins}}, {weight, {outs, ins}}}, out{{x, {rows, outs}}};
  const Attrs attrs{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
  return predict_call(find_op("linear"), {in, out, attrs}, profile);
}

// The rate of the kernels that the call names, if they were measured.
TEST(GpuPredict, AttentionTakesTheRateOfItsKernels) {
  Json json = gpu_json();
  json["attention_kernels"] = Json::parse(R"([{"dtype": "bf16", "kernels": "own", "forward": 2e14, "backward": 4e14},
                                              {"dtype": "bf16", "kernels": "cudnn", "forward": 8e14}])");
  const Profile profile = parse_profile(json.dump(), "gpu");
  const ConcreteType q{DType::bf16, {4, 4096, 1024}}, lse{DType::f32, {4, 16, 4096}};
  const auto rate = [&](const char* op, const char* kernels) {
    Attrs attrs{{"heads", int64_t{16}}, {"kv_heads", int64_t{16}}};
    if (*kernels) attrs.set("kernels", std::string(kernels));
    std::vector<ConcreteType> in{q, q, q}, out{q, lse};
    if (op == std::string_view("attention_grad")) in.insert(in.end(), {q, lse, q}), out = {q, q, q};
    return find_op(op).work({in, out, attrs}).flops / predict_call(find_op(op), {in, out, attrs}, profile);
  };
  EXPECT_NEAR(rate("attention", ""), kRate, 1e3);
  EXPECT_NEAR(rate("attention", "own"), 2e14, 1e3);
  EXPECT_NEAR(rate("attention", "cudnn"), 8e14, 1e3);
  EXPECT_NEAR(rate("attention_grad", "own"), 4e14, 1e3);
  EXPECT_NEAR(rate("attention_grad", "cudnn"), kRate, 1e3);
}

double add_seconds(int64_t elements) {
  const std::vector<ConcreteType> in(2, {DType::f32, {elements}}), out{in[0]};
  const Attrs attrs;
  return predict_call(find_op("add"), {in, out, attrs}, gpu());
}

TEST(GpuPredict, ACallTakesItsWorkOrItsLaunch) {
  EXPECT_DOUBLE_EQ(add_seconds(64), kLaunch);
  EXPECT_DOUBLE_EQ(add_seconds(int64_t{1} << 28), 12.0 * (int64_t{1} << 28) / kBytes);
  EXPECT_NEAR(linear_seconds(gpu(), 8192, 8192, 8192), 2.0 * 8192 * 8192 * 8192 / kRate, 1e-12);
  EXPECT_DOUBLE_EQ(linear_seconds(gpu(), 16, 64, 64), kLaunch);
}

// Products have the rate measured in fp16, else that of bf16; attention has kernels for tensor cores in bf16 alone.
TEST(GpuPredict, Fp16HasItsOwnProductsWhereTheyWereMeasured) {
  const auto product = [](const Json& json) {
    return linear_seconds(parse_profile(json.dump(), "gpu"), 8192, 8192, 8192, DType::f16, DType::f16);
  };
  Json json = gpu_json();
  const double as_bf16 = product(json);
  json["products"].push_back(
      {{"dtype", "f16"}, {"rows", 1024}, {"outs", 1024}, {"ins", 1024}, {"flops_per_second", 4 * kRate}});
  EXPECT_NEAR(product(json), as_bf16 / 4, 1e-9);
  json["attention"][0]["forward"] = kRate / 8;  // in fp32
  const ConcreteType q{DType::f16, {4, 4096, 1024}}, lse{DType::f32, {4, 16, 4096}};
  const std::vector<ConcreteType> in{q, q, q}, out{q, lse};
  const Attrs attrs{{"heads", int64_t{16}}, {"kv_heads", int64_t{16}}};
  const OpCall call{in, out, attrs};
  EXPECT_NEAR(find_op("attention").work(call).flops /
                  predict_call(find_op("attention"), call, parse_profile(json.dump(), "gpu")),
              kRate / 8, 1e6);
}

// Twice the rate of bf16 plus two passes over each operand, 5 bytes per element; or the measured rate, which includes
// them.
TEST(GpuPredict, Fp8TakesItsRateAndTheRounding) {
  constexpr int64_t kSize = 8192;
  constexpr double kFlops = 2.0 * kSize * kSize * kSize, kRounding = 2 * 5.0 * kSize * kSize / kBytes;
  const auto seconds = [](const Profile& profile, int64_t rows) {
    const std::vector<ConcreteType> in{{DType::bf16, {rows, kSize}}, {DType::bf16, {kSize, kSize}}},
        out{{DType::bf16, {rows, kSize}}};
    const Attrs attrs{{"multiply", "fp8"}};
    return predict_call(find_op("linear"), {in, out, attrs}, profile);
  };
  EXPECT_NEAR(seconds(gpu(), kSize), kFlops / (2 * kRate) + kRounding, 1e-9);
  EXPECT_NEAR(seconds(gpu(), kSize + 8), linear_seconds(gpu(), kSize + 8, kSize, kSize), 1e-12);  // stays in bf16
  Json json = gpu_json();
  json["products"].push_back({{"dtype", "bf16"},
                              {"multiply", "fp8"},
                              {"rows", 1024},
                              {"outs", 1024},
                              {"ins", 1024},
                              {"flops_per_second", 3 * kRate}});
  const Profile measured = parse_profile(json.dump(), "gpu");
  EXPECT_NEAR(seconds(measured, kSize), kFlops / (3 * kRate), 1e-9);
  EXPECT_NEAR(linear_seconds(measured, kSize, kSize, kSize), kFlops / kRate, 1e-9);
}

TEST(GpuPredict, FewRowsTakeWhatMovingTheWeightDoes) {
  const double one = linear_seconds(gpu(), 1, 8192, 8192);
  EXPECT_NEAR(one, 2.0 * 8192 * 8192 / kBytes, 1e-3 * one);
  EXPECT_NEAR(linear_seconds(gpu(), 16, 8192, 8192), one, 1e-2 * one);
}

TEST(GpuPredict, AWideWeightIsReadAndItsCopyWritten) {
  const double narrow = linear_seconds(gpu(), 8192, 8192, 8192);
  EXPECT_NEAR(linear_seconds(gpu(), 8192, 8192, 8192, DType::f32), narrow + 6.0 * 8192 * 8192 / kBytes, 1e-12);
}

// A product whose volume was measured is not slowed down by small ones with the same number of rows.
TEST(GpuPredict, TheVolumeOfAProductCountsMoreThanItsAspect) {
  Json json = gpu_json();
  json["products"].push_back(
      {{"dtype", "bf16"}, {"rows", 256}, {"outs", 256}, {"ins", 256}, {"flops_per_second", kRate / 10}});
  const Profile profile = parse_profile(json.dump(), "gpu");
  const double flops = 2.0 * 256 * 4096 * 1024;
  EXPECT_LT(linear_seconds(profile, 256, 4096, 1024), 1.05 * flops / kRate);
}

struct Loss {
  int64_t rows = 8192, vocabulary = 32768, hidden = 1024;
  DType dtype = DType::bf16, weight = DType::bf16;
  bool trains = true;

  double seconds(int64_t chunk, const Profile& profile) const {
    const std::vector<ConcreteType> in{{dtype, {1, rows, hidden}}, {weight, {vocabulary, hidden}},
                                       {DType::i32, {1, rows}},    {DType::f32, {1}},
                                       {DType::f64, {2}},          {DType::f32, {vocabulary, hidden}}};
    const std::vector<ConcreteType> out{in[0], in[4], in[5]};
    const Attrs attrs{{"layout", "out_in"}, {"chunk", chunk}, {"train_weight", int64_t{trains}}};
    return predict_call(find_op("linear_cross_entropy_grad"), {in, out, attrs}, profile);
  }
  double product() const { return 2.0 * static_cast<double>(rows * vocabulary * hidden) / kRate; }
  double passes() const { return 10.0 * static_cast<double>(rows * vocabulary) / kBytes; }
  double sums() const { return 8.0 * static_cast<double>(vocabulary * hidden) / kBytes; }
};

TEST(GpuPredict, LargeChunksOfTheLossTakeTheirArithmetic) {
  const Loss loss;
  EXPECT_NEAR(loss.seconds(2048, gpu()), 3 * loss.product() + loss.passes() + kLaunch, 1e-9);
  EXPECT_DOUBLE_EQ(loss.seconds(0, gpu()), loss.seconds(8192, gpu()));
}

TEST(GpuPredict, EveryChunkOfTheLossReadsAndWritesTheSums) {
  const Loss loss;
  for (int64_t chunk : {64, 128}) {
    const double chunks = static_cast<double>(loss.rows / chunk), most = loss.seconds(2048, gpu());
    EXPECT_GT(loss.seconds(chunk, gpu()), chunks * loss.sums());
    EXPECT_GT(loss.seconds(chunk, gpu()), most + chunks * loss.sums() - loss.product()) << chunk;
  }
  const auto trained = [&](int64_t chunk) {
    Loss frozen = loss;
    frozen.trains = false;
    return loss.seconds(chunk, gpu()) - frozen.seconds(chunk, gpu());
  };
  EXPECT_NEAR(trained(64) / trained(128), 2, 0.1) << "half the rows, twice the sums";
}

TEST(GpuPredict, ALastChunkIsPricedByItsRows) {
  Loss loss;
  loss.rows = 2048 + 64;
  Loss first = loss, last = loss;
  first.rows = 2048, last.rows = 64;
  EXPECT_NEAR(loss.seconds(2048, gpu()), first.seconds(2048, gpu()) + last.seconds(64, gpu()) - kLaunch, 1e-9);
}

TEST(GpuPredict, AWideHeadIsRoundedOnce) {
  Loss loss;
  for (int64_t chunk : {256, 1024}) {
    loss.weight = DType::bf16;
    const double narrow = loss.seconds(chunk, gpu());
    loss.weight = DType::f32;
    EXPECT_NEAR(loss.seconds(chunk, gpu()), narrow + 0.75 * loss.sums(), 1e-9) << chunk;
  }
}

// A measured chunk takes its measured time; smaller ones are computed from it, with all of their sums.
TEST(GpuPredict, AMeasuredChunkGivesTheScaleOfOthers) {
  const Loss loss;
  Json json = gpu_json();
  const double chunk_flops = 6.0 * 1024 * static_cast<double>(loss.vocabulary * loss.hidden);
  json["products"].push_back({{"op", "linear_cross_entropy_grad"},
                              {"dtype", "bf16"},
                              {"rows", 1024},
                              {"outs", loss.vocabulary},
                              {"ins", loss.hidden},
                              {"flops_per_second", kRate / 3}});
  const Profile profile = parse_profile(json.dump(), "gpu");
  EXPECT_NEAR(loss.seconds(1024, profile), 8 * chunk_flops / (kRate / 3) + kLaunch, 1e-6);
  const double share = (loss.seconds(1024, profile) - kLaunch) / (loss.seconds(1024, gpu()) - kLaunch);
  EXPECT_NEAR(loss.seconds(64, profile), share * loss.seconds(64, gpu()), 1e-3);
}

}  // namespace
}  // namespace headroom
