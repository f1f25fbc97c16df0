// Generation with weights on the host or on disk: bitwise the plain run at every placement and at the least budget,
// with all accesses ordered.
#include <gmock/gmock.h>

#include "../formats/file_size_limit.h"
#include "../runtime/race_checker.h"
#include "device/disk/scratch_file.h"
#include "planner/weight_placement.h"
#include "tiny_generation.h"

namespace headroom {
namespace {

constexpr int64_t kPositions = 44, kChunk = 8, kBelow = int64_t{1} << 30;

struct Generated {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
};

class WeightsBelow : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    write_tiny_model(directory_);
    try {
      const ScratchFile file(directory_.path(), kDiskBlockBytes);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::filesystem::path model() const { return directory_ / "model"; }

  static Generated generate(TinyGeneration& generation) {
    Generated out;
    out.tokens = generation.run(tiny_prompt(23), {{1.0, 0.9, 0, 11}, 12, {}});
    out.logits = generation.logits();
    return out;
  }

  TinyGeneration::Change within(Tier tier, int64_t memory, std::map<std::string, std::string> techniques = {}) const {
    return [=](PlanRequest& request) {
      request.budget_bytes = memory;
      for (const auto& [name, setting] : techniques) request.techniques[name] = {setting};
      set_precision(request, GetParam());
      if (tier != Tier::device) (tier == Tier::host ? request.host_budget_bytes : request.disk_budget_bytes) = kBelow;
    };
  }

  // Runs a request with some weights in a lower tier, every access checked.
  Generated checked(Tier tier, const TinyGeneration::Change& change) {
    test::RaceChecker* checker = nullptr;
    TinyGeneration generation(model(), kPositions, kChunk, change, [&](const DeviceFacts& facts) {
      auto device = std::make_unique<test::RaceChecker>(open_device("cpu", facts, directory_.path()));
      checker = device.get();
      return device;
    });
    EXPECT_GT(generation.plan().below(tier).breakdown.weights, 0);
    EXPECT_FALSE(describe_placement(generation.plan()).empty());
    Generated out = generate(generation);
    EXPECT_THAT(checker->races(), testing::IsEmpty());
    EXPECT_GT(checker->copies(), 0);
    for (const Tier each : kArenaTiers)
      EXPECT_EQ(generation.executor().arena_high_water(each), generation.plan().arenas().of(each)) << tier_name(each);
    return out;
  }

  TemporaryDirectory directory_;
};

TEST_P(WeightsBelow, GenerateBitwiseAtTheLeastBudget) {
  TinyGeneration plain(model(), kPositions, kChunk, within(Tier::device, kBelow));
  const Generated expected = generate(plain);
  for (const Tier tier : kLowerTiers) {
    SCOPED_TRACE(tier_name(tier));
    const int64_t least = TinyGeneration::least(model(), kPositions, kChunk, within(tier, 1));
    EXPECT_LT(least, plain.plan().peak_bytes);
    const Generated found = checked(tier, within(tier, least));
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.logits, expected.logits);
  }
}

TEST_P(WeightsBelow, GenerateBitwiseAtEveryPlacement) {
  TinyGeneration plain(model(), kPositions, kChunk, within(Tier::device, kBelow));
  const Generated expected = generate(plain);
  for (const Tier tier : kLowerTiers)
    for (const char* layers : {"1", "2", "3", "on"})
      for (const char* depth : {"off", "1", "3"}) {
        SCOPED_TRACE(testing::Message() << tier_name(tier) << ", " << layers << " layers, prefetch " << depth);
        const Generated found =
            checked(tier, within(tier, kBelow, {{"offload-parameters", layers}, {"prefetch", depth}}));
        EXPECT_EQ(found.tokens, expected.tokens);
        EXPECT_EQ(found.logits, expected.logits);
      }
}

TEST_P(WeightsBelow, AreWrittenToADiskThatFailsInWords) {
  const auto make_device = [&](const DeviceFacts& facts) { return open_device("cpu", facts, directory_.path()); };
  std::optional<FileSizeLimit> full;
  try {
    TinyGeneration generation(model(), kPositions, kChunk, within(Tier::disk, kBelow, {{"offload-parameters", "on"}}),
                              [&](const DeviceFacts& facts) {
                                full.emplace(4096);
                                return make_device(facts);
                              });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(directory_.path().string()));
    EXPECT_FALSE(error.remedy().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, WeightsBelow, testing::Values("32-true", "bf16-true"),
                         [](const auto& param) { return param.param[0] == '3' ? "Fp32" : "Bf16"; });

}  // namespace
}  // namespace headroom
