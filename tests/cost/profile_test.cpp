// Profiles: reading, refusals, and predicted seconds.
#include "cost/profile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cost/predict.h"
#include "cost/product_rates.h"
#include "cost/shipped_profiles.h"
#include "formats/json.h"
#include "ops/backend.h"
#include "ops/registry.h"

namespace headroom {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_profile(text, "p.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_FALSE(error.remedy().empty());
    return error.what();
  }
  return "accepted";
}

Json shipped_json() {
  for (const ShippedProfile& shipped : shipped_profiles())
    if (shipped.name == "cpu-avx2") return Json::parse(shipped.json);
  return {};
}

TEST(Profile, ShippedOnesAreReadAndWrittenTheSame) {
  EXPECT_GE(shipped_profiles().size(), 10u);
  for (const ShippedProfile& shipped : shipped_profiles()) {
    const Profile profile = load_profile(std::string(shipped.name));
    EXPECT_EQ(profile.name, shipped.name);
    const std::string text = profile_json(profile);
    EXPECT_EQ(profile_json(parse_profile(text, "again")), text);
    EXPECT_EQ(profile.facts.device == "cpu", shipped.name.starts_with("cpu"));
    if (profile.facts.device != "cpu") {
      EXPECT_GT(profile.memory_bytes, int64_t{1} << 32);
    }
  }
}

TEST(Profile, ShippedOnesOfGpusNameTheSourcesOfTheirRates) {
  for (const ShippedProfile& shipped : shipped_profiles()) {
    const Profile profile = load_profile(std::string(shipped.name));
    const bool measured = profile.facts.is_cpu() || shipped.name == "H200-141GB";
    EXPECT_EQ(profile.sources.empty(), measured) << shipped.name;
    EXPECT_EQ(parse_profile(profile_json(profile), "again").sources.size(), profile.sources.size());
    for (const RateSource& source : profile.sources) EXPECT_FALSE(source.rates.empty() || source.from.empty());
  }
  Json json = shipped_json();
  json["sources"] = Json::array({{{"rates", "products"}}});
  EXPECT_NE(refusal(json.dump()).find("'from'"), std::string::npos);
}

// No product's rate exceeds what the device's best shapes were measured at.
TEST(Profile, ShippedRatesOfGpusAreWhatWasReached) {
  for (const auto& [name, most] : {std::pair{"H100-80GB", 821e12},
                                   {"H200-141GB", 870e12},
                                   {"A100-80GB", 272e12},
                                   {"RTX-4090", 179e12},
                                   {"RTX-3090", 78e12}}) {
    double found = 0;
    for (const ProductSample& sample : load_profile(name).products)
      if (sample.multiply != "fp8") found = std::max(found, sample.flops_per_second);
    EXPECT_LT(found, most) << name;
    EXPECT_GT(found, 0.9 * most) << name;
  }
}

TEST(Profile, IdentityFollowsTheContent) {
  Json json = shipped_json();
  const Profile first = parse_profile(json.dump(), "p.json");
  json["launch_seconds"] = 0.5;
  const Profile second = parse_profile(json.dump(), "p.json");
  EXPECT_NE(first.identity(), second.identity());
  EXPECT_EQ(first.identity(), parse_profile(shipped_json().dump(), "elsewhere").identity());
}

TEST(Profile, DisturbedPointsAreKeptAndRemarkedOn) {
  Json json = shipped_json();
  const Profile undisturbed = parse_profile(json.dump(), "p.json");
  EXPECT_EQ(undisturbed.remark(), "");
  json["products"][1]["disturbed"] = true;
  json["attention"][0]["disturbed"] = true;
  json["streams"] = Json::parse(R"([{"op": "add", "dtype": "f32", "bytes_per_second": 1, "disturbed": true}])");
  json["in_sequence"] = Json::parse(R"([{"dtype": "f32", "factor": 1, "disturbed": true}])");
  json["disturbed"] = {"launch_seconds"};
  const Profile profile = parse_profile(json.dump(), "p.json");
  EXPECT_TRUE(profile.products[1].disturbed);
  EXPECT_FALSE(profile.products[0].disturbed);
  EXPECT_TRUE(profile.attention[0].disturbed);
  EXPECT_TRUE(profile.streams[0].disturbed);
  EXPECT_TRUE(profile.in_sequence[0].disturbed);
  const size_t points = profile.products.size() + profile.attention.size() + 1 + 1 + 5;
  EXPECT_NE(profile.remark().find(fmt::format(" 5 of {} points", points)), std::string::npos) << profile.remark();
  EXPECT_NE(profile.remark().find("`headroom profile`"), std::string::npos) << profile.remark();
  EXPECT_EQ(profile_json(parse_profile(profile_json(profile), "again")), profile_json(profile));
}

TEST(Profile, AttentionKernelsAreKept) {
  Json json = shipped_json();
  EXPECT_TRUE(parse_profile(json.dump(), "p.json").attention_kernels.empty());
  json["attention_kernels"] = Json::parse(R"([
      {"dtype": "bf16", "kernels": "own", "forward": 2e14, "backward": 1e14, "sequence": 4096, "head_dim": 64},
      {"dtype": "bf16", "kernels": "cudnn_any_order", "backward": 3e14, "disturbed": true}])");
  const Profile profile = parse_profile(json.dump(), "p.json");
  ASSERT_EQ(profile.attention_kernels.size(), 2u);
  EXPECT_EQ(profile.attention_kernels[0].kernels, "own");
  EXPECT_EQ(profile.attention_kernels[0].forward, 2e14);
  EXPECT_EQ(profile.attention_kernels[0].sequence, 4096);
  EXPECT_EQ(profile.attention_kernels[1].forward, 0);
  EXPECT_NE(profile.remark().find(" 1 of "), std::string::npos) << profile.remark();
  EXPECT_EQ(profile_json(parse_profile(profile_json(profile), "again")), profile_json(profile));
  json["attention_kernels"][0].erase("kernels");
  EXPECT_NE(refusal(json.dump()).find("kernels"), std::string::npos);
  json["attention_kernels"] = Json::parse(R"([{"dtype": "bf16", "kernels": "own"}])");
  EXPECT_NE(refusal(json.dump()).find("attention_kernels"), std::string::npos);
}

TEST(Profile, MalformedOnesAreRefusedByKey) {
  for (const char* key : {"name", "products", "attention", "stream_bytes_per_second", "optimizer_bytes_per_second",
                          "softmax_bytes_per_second", "copy_bytes_per_second"}) {
    Json json = shipped_json();
    json.erase(key);
    const std::string text = refusal(json.dump());
    EXPECT_NE(text.find(key), std::string::npos) << text;
    EXPECT_NE(text.find("p.json"), std::string::npos) << text;
    json[key] = nullptr;
    EXPECT_NE(refusal(json.dump()), "accepted") << key;
  }
  for (double rate : {0.0, -1.0, 1e300}) {
    Json json = shipped_json();
    json["stream_bytes_per_second"] = rate;
    EXPECT_NE(refusal(json.dump()), "accepted") << rate;
  }
  Json json = shipped_json();
  json["products"][0]["dtype"] = "f31";
  EXPECT_NE(refusal(json.dump()).find("dtype"), std::string::npos);
  json = shipped_json();
  json["attention"] = Json::array();
  EXPECT_NE(refusal(json.dump()).find("attention"), std::string::npos);
  for (const char* text : {"", "[]", "{", "null", "{\"name\": 3}"}) EXPECT_NE(refusal(text), "accepted") << text;
}

TEST(Profile, WrongTypesAreRefused) {
  for (const char* key : {"device", "threads", "isa", "native_bf16", "alignment", "memory_bytes", "launch_seconds"}) {
    Json json = shipped_json();
    json[key] = Json::array();
    EXPECT_NE(refusal(json.dump()), "accepted") << key;
  }
}

// Older profiles have numbers; new ones are written with names.
TEST(Profile, InstructionSetsHaveNames) {
  const std::pair<const char*, int> sets[] = {
      {"none", 0}, {"avx2", 2}, {"avx512", 512}, {"avx512_bf16", 513}, {"amx", 514}};
  Json json = shipped_json();
  for (const auto& [name, number] : sets) {
    json["isa"] = number;
    const Profile numbered = parse_profile(json.dump(), "numbered");
    json["isa"] = name;
    EXPECT_EQ(parse_profile(json.dump(), "named").facts.capabilities, numbered.facts.capabilities) << name;
    EXPECT_EQ(Json::parse(profile_json(numbered)).at("isa"), name);
  }
  json["isa"] = "avx3";
  EXPECT_NE(refusal(json.dump()).find("'isa' should be none, avx2, avx512, avx512_bf16 or amx of a cpu"),
            std::string::npos);
}

TEST(Profile, ComputeCapabilitiesHaveNames) {
  const Backend& cuda = *backends().find("cuda");
  for (const int number : {0, 61, 90, 120}) {
    const Capabilities capabilities = cuda.capabilities_numbered(number).value();
    EXPECT_EQ(cuda.capabilities_named(cuda.capabilities_name(capabilities)), capabilities) << number;
  }
  EXPECT_EQ(cuda.capabilities_name(cuda.capabilities_numbered(86).value()), "8.6");
  for (const char* name : {"", "9", "90", "9.", "9.00", "09.0", "-9.0", "9.0a", "123456789.0"})
    EXPECT_FALSE(cuda.capabilities_named(name)) << name;
}

TEST(Profile, FactsOutOfRangeAreRefused) {
  const std::pair<const char*, Json> facts[] = {{"alignment", 96},          {"alignment", int64_t{1} << 40},
                                                {"alignment", -64},         {"threads", 1 << 20},
                                                {"launch_seconds", -1.0},   {"launch_seconds", 1e9},
                                                {"memory_bytes", -1},       {"context_bytes", INT64_MAX},
                                                {"host_context_bytes", -1}, {"gemm_workspace_bytes", INT64_MAX},
                                                {"memory_bytes", 1e30}};
  for (const auto& [key, value] : facts) {
    Json json = shipped_json();
    json[key] = value;
    const std::string text = refusal(json.dump());
    EXPECT_NE(text.find(key), std::string::npos) << key << " = " << value << ": " << text;
  }
}

TEST(Profile, UnknownNamesListTheShippedOnes) {
  try {
    load_profile("H100-81GB");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(error.remedy().find("H100-80GB"), std::string::npos);
  }
}

double linear_seconds(int64_t rows, DType dtype, const Profile& profile) {
  const std::vector<ConcreteType> inputs{{dtype, {rows, 512}}, {dtype, {512, 512}}};
  const std::vector<ConcreteType> outputs{{dtype, {rows, 512}}};
  const Attrs attrs{{"layout", "out_in"}, {"bias", int64_t{0}}, {"residual", int64_t{0}}};
  return predict_call(find_op("linear"), {inputs, outputs, attrs}, profile);
}

TEST(Predict, ProductsTakeTimeInProportion) {
  const Profile profile = load_profile("cpu-avx512");
  const double one = linear_seconds(256, DType::f32, profile), two = linear_seconds(512, DType::f32, profile);
  EXPECT_GT(one, 0);
  EXPECT_GT(two, 1.5 * one);
  EXPECT_LT(two, 2.5 * one);
  EXPECT_LT(linear_seconds(512, DType::bf16, profile), two);
}

TEST(Predict, AMeasuredShapeGetsItsMeasuredRate) {
  Json json = shipped_json();
  json["launch_seconds"] = 0.0;
  json["products"].push_back(
      {{"op", "linear"}, {"dtype", "f32"}, {"rows", 333}, {"outs", 512}, {"ins", 512}, {"flops_per_second", 1e9}});
  const double seconds = linear_seconds(333, DType::f32, parse_profile(json.dump(), "p.json"));
  EXPECT_NEAR(seconds, 2.0 * 333 * 512 * 512 / 1e9, 0.01 * seconds);
}

// At the measured rate, whatever the operands are stored in, or one that follows from fp32's.
TEST(Predict, ProductsOfCodesTakeTheirOwnRate) {
  Json json = shipped_json();
  json["launch_seconds"] = 0.0, json["in_sequence"] = Json::array();
  const auto seconds = [](DType dtype, const Json& profile) {
    const std::vector<ConcreteType> inputs{{dtype, {512, 512}}, {dtype, {512, 512}}}, outputs{{dtype, {512, 512}}};
    const Attrs attrs{{"multiply", "int8"}};
    return predict_call(find_op("linear"), {inputs, outputs, attrs}, parse_profile(profile.dump(), "p.json"));
  };
  const double full = linear_seconds(512, DType::f32, parse_profile(json.dump(), "p.json"));
  EXPECT_NEAR(seconds(DType::f32, json), full / kInt8Gain, 1e-9 * full);
  EXPECT_NEAR(seconds(DType::bf16, json), full / kInt8Gain, 1e-9 * full);
  json["products"].push_back({{"op", "linear"},
                              {"dtype", "f32"},
                              {"multiply", "int8"},
                              {"rows", 512},
                              {"outs", 512},
                              {"ins", 512},
                              {"flops_per_second", 3e9}});
  EXPECT_NEAR(seconds(DType::bf16, json), 2.0 * 512 * 512 * 512 / 3e9, 1e-9);
  EXPECT_NEAR(linear_seconds(512, DType::f32, parse_profile(json.dump(), "p.json")), full, 1e-9 * full);
}

// Their codes are multiplied as they are: no time to decode the weight, and a rate of their own.
TEST(Predict, ProductsOf8BitActivationsDecodeNothing) {
  Json json = shipped_json();
  json["launch_seconds"] = 0.0, json["in_sequence"] = Json::array();
  const auto seconds = [](const char* multiply, const Json& profile) {
    const std::vector<ConcreteType> inputs{{DType::bf16, {16, 512}}, {DType::bf16, {512, 512}, {32, 8}}},
        outputs{{DType::bf16, {16, 512}}};
    const Attrs attrs{{"multiply", multiply}};
    return predict_call(find_op("linear"), {inputs, outputs, attrs}, parse_profile(profile.dump(), "p.json"));
  };
  const double full = linear_seconds(16, DType::f32, parse_profile(json.dump(), "p.json"));
  EXPECT_NEAR(seconds("int8-blocks", json), full / kInt8BlocksGain, 1e-9 * full);
  EXPECT_GT(seconds("", json), seconds("int8-blocks", json));
  Json sample = {{"op", "linear"}, {"dtype", "f32"}, {"multiply", "int8"},     {"rows", 16},
                 {"outs", 512},    {"ins", 512},     {"flops_per_second", 3e9}};
  json["products"].push_back(sample);
  EXPECT_NEAR(seconds("int8-blocks", json), full / kInt8BlocksGain, 1e-9 * full);
  sample["multiply"] = "int8-blocks", sample["flops_per_second"] = 5e9;
  json["products"].push_back(sample);
  EXPECT_NEAR(seconds("int8-blocks", json), 2.0 * 16 * 512 * 512 / 5e9, 1e-9);
}

TEST(Predict, StreamsFollowTheirBytes) {
  const Profile profile = load_profile("cpu-avx2");
  const std::vector<ConcreteType> in{{DType::f32, {1000, 1000}}, {DType::f32, {1000, 1000}}},
      out{{DType::f32, {1000, 1000}}};
  const Attrs attrs;
  EXPECT_DOUBLE_EQ(predict_call(find_op("add"), {in, out, attrs}, profile),
                   12e6 / profile.stream_bytes_per_second + profile.launch_seconds);
}

TEST(Predict, AnOpWithItsOwnStreamRateTakesIt) {
  Json json = shipped_json();
  json["streams"] = Json::array({{{"op", "add"}, {"dtype", "bf16"}, {"bytes_per_second", 1e9}}});
  const Profile profile = parse_profile(json.dump(), "p.json");
  EXPECT_EQ(profile_json(parse_profile(profile_json(profile), "again")), profile_json(profile));
  const auto seconds = [&](DType dtype) {
    const std::vector<ConcreteType> in{{dtype, {1000, 1000}}, {dtype, {1000, 1000}}}, out{{dtype, {1000, 1000}}};
    const Attrs attrs;
    return predict_call(find_op("add"), {in, out, attrs}, profile);
  };
  EXPECT_DOUBLE_EQ(seconds(DType::bf16), 6e6 / 1e9 + profile.launch_seconds);
  EXPECT_DOUBLE_EQ(seconds(DType::f32), 12e6 / profile.stream_bytes_per_second + profile.launch_seconds);
  json["streams"][0]["bytes_per_second"] = -1;
  EXPECT_NE(refusal(json.dump()).find("bytes_per_second"), std::string::npos);
}

// On a GPU, copies between tiers cross a bus.
TEST(Predict, ACastStaysInTheMemoryOfAGpu) {
  const std::vector<ConcreteType> in{{DType::f32, {1000, 1000}}}, out{{DType::bf16, {1000, 1000}}};
  const Attrs attrs{{"dtype", "bf16"}};
  for (const char* name : {"H100-80GB", "RTX-4090"}) {
    const Profile profile = load_profile(name);
    EXPECT_DOUBLE_EQ(predict_call(find_op("cast"), {in, out, attrs}, profile),
                     std::max(6e6 / profile.stream_bytes_per_second, profile.launch_seconds));
  }
  const Profile profile = load_profile("cpu-avx2");
  EXPECT_DOUBLE_EQ(predict_call(find_op("cast"), {in, out, attrs}, profile),
                   6e6 / profile.copy_bytes_per_second + profile.launch_seconds);
}

// Products and elementwise ops of a dtype, but not ops that stand alone in a step.
TEST(Predict, OpsInSequenceTakeTheirFactor) {
  Json json = shipped_json();
  const Profile alone = parse_profile(json.dump(), "p.json");
  json["in_sequence"] = Json::array({{{"dtype", "bf16"}, {"factor", 1.25}}});
  const Profile profile = parse_profile(json.dump(), "p.json");
  EXPECT_EQ(profile_json(parse_profile(profile_json(profile), "again")), profile_json(profile));
  EXPECT_DOUBLE_EQ(linear_seconds(64, DType::bf16, profile), 1.25 * linear_seconds(64, DType::bf16, alone));
  EXPECT_DOUBLE_EQ(linear_seconds(64, DType::f32, profile), linear_seconds(64, DType::f32, alone));
  const auto seconds = [&](const char* op, const Profile& with) {
    const std::vector<ConcreteType> in(std::string_view(op) == "adamw" ? 4 : 2, {DType::bf16, {100, 100}});
    const std::vector<ConcreteType> out{in[0]};
    const Attrs attrs;
    return predict_call(find_op(op), {in, out, attrs}, with);
  };
  EXPECT_DOUBLE_EQ(seconds("add", profile), 1.25 * seconds("add", alone));
  EXPECT_DOUBLE_EQ(seconds("adamw", profile), seconds("adamw", alone));
  for (const char* wrong : {"0", "-1", "\"much\""}) {
    json["in_sequence"][0]["factor"] = Json::parse(wrong);
    EXPECT_NE(refusal(json.dump()).find("factor"), std::string::npos) << wrong;
  }
}

double loss_seconds(int64_t chunk, const Profile& profile, int64_t vocabulary = 999) {
  const std::vector<ConcreteType> in{{DType::f32, {1, 1024, 64}}, {DType::f32, {vocabulary, 64}},
                                     {DType::i32, {1, 1024}},     {DType::f32, {1}},
                                     {DType::f64, {2}},           {DType::f32, {vocabulary, 64}}};
  const std::vector<ConcreteType> out{in[0], in[4], in[5]};
  const Attrs attrs{{"layout", "out_in"}, {"chunk", chunk}, {"train_weight", int64_t{1}}};
  return predict_call(find_op("linear_cross_entropy_grad"), {in, out, attrs}, profile);
}

TEST(Predict, ALossTakesTheRateOfItsChunk) {
  Json json = shipped_json();
  for (int64_t rows : {64, 1024})
    json["products"].push_back({{"op", "linear_cross_entropy_grad"},
                                {"dtype", "f32"},
                                {"rows", rows},
                                {"outs", 8192},
                                {"ins", 64},
                                {"flops_per_second", rows == 64 ? 1e9 : 4e9}});
  const Profile profile = parse_profile(json.dump(), "p.json");
  const double flops = 6.0 * 1024 * 999 * 64;
  EXPECT_NEAR(loss_seconds(64, profile), flops / 1e9, 0.01 * flops / 1e9);
  EXPECT_NEAR(loss_seconds(1024, profile), flops / 4e9, 0.01 * flops / 4e9);
}

// Of a small vocabulary, a chunk of few rows reads the weight and its gradient's sums as one of many rows does.
TEST(Predict, ALossOfThinChunksTakesTheTimeToMoveTheWeight) {
  Json json = shipped_json();
  json["products"].push_back({{"op", "linear_cross_entropy_grad"},
                              {"dtype", "f32"},
                              {"rows", 64},
                              {"outs", 8192},
                              {"ins", 64},
                              {"flops_per_second", 1e9}});
  json["copy_bytes_per_second"] = 1e8;
  const double moved = 999 * 64 * 16 / 1e8, wide = 6.0 * 64 * 999 * 64 / 1e9;
  const Profile estimated = parse_profile(json.dump(), "p.json");
  EXPECT_NEAR(loss_seconds(4, estimated), 256 * (moved + (wide - moved) * 4 / 64), 1e-3);
  EXPECT_NEAR(loss_seconds(32, estimated), 32 * (moved + (wide - moved) / 2), 1e-3);
}

// In slices of the vocabulary many rows read the weight together, and the logits are computed twice.
TEST(Predict, ALossInSlicesComputesTheLogitsTwice) {
  Json json = shipped_json();
  const auto measured = [](int64_t rows, double rate) {
    return Json{{"op", "linear_cross_entropy_grad"}, {"dtype", "f32"}, {"rows", rows}, {"outs", 8192}, {"ins", 64},
                {"flops_per_second", rate}};
  };
  json["products"].push_back(measured(256, 1e9));
  const double flops = 2.0 * 1024 * 8192 * 64;
  EXPECT_NEAR(loss_seconds(4, parse_profile(json.dump(), "p.json"), 8192), 4 * flops / 1e9, 0.01 * flops / 1e9);
  json["products"].push_back(measured(4, 5e8));
  EXPECT_NEAR(loss_seconds(4, parse_profile(json.dump(), "p.json"), 8192), 3 * flops / 5e8, 0.01 * flops / 5e8);
}

TEST(Predict, AttentionTakesTheRateOfItsLengthAndHeadDimension) {
  Json json = shipped_json();
  json["attention"] = Json::array();
  for (const char* dtype : {"f32", "bf16"})
    for (int64_t sequence : {128, 2048})
      json["attention"].push_back({{"dtype", dtype},
                                   {"forward", sequence == 128 ? 1e9 : 8e9},
                                   {"backward", 1e9},
                                   {"sequence", sequence},
                                   {"head_dim", 64}});
  const Profile profile = parse_profile(json.dump(), "p.json");
  const auto rate = [&](int64_t sequence) {
    const std::vector<ConcreteType> in(3, {DType::f32, {1, sequence, 256}});
    const std::vector<ConcreteType> out{in[0], {DType::f32, {1, 4, sequence}}};
    const Attrs attrs{{"heads", int64_t{4}}, {"kv_heads", int64_t{4}}};
    const Op& op = find_op("attention");
    return op.work({in, out, attrs}).flops / (predict_call(op, {in, out, attrs}, profile) - profile.launch_seconds);
  };
  EXPECT_NEAR(rate(128), 1e9, 1e7);
  EXPECT_NEAR(rate(2048), 8e9, 8e7);
  EXPECT_GT(rate(512), 1e9);
  EXPECT_LT(rate(512), 8e9);
}

}  // namespace
}  // namespace headroom
