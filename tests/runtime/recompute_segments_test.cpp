// Inputs of layers that are computed again from the first one of their segment: bitwise the run that keeps them, in an
// arena of NaN, with whatever else changes the order of computation; and fewer bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/error.h"
#include "passes/recompute_segments.h"
#include "race_checker.h"
#include "tiny_run.h"

namespace headroom {
namespace {

std::string with_layers(const char* config, int layers) {
  std::string text = config;
  const std::string three = "\"num_hidden_layers\":3";
  return text.replace(text.find(three), three.size(), "\"num_hidden_layers\":" + std::to_string(layers));
}

struct SegmentedOutcome {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
};

class RecomputeSegments : public testing::Test {
 protected:
  void write(int layers, const char* config = kTinyConfig) {
    directory_.emplace();
    write_tiny_model(*directory_, with_layers(config, layers).c_str());
    options_ = tiny_options(*directory_);
    options_.data.micro_batch_size = 2;
    options_.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "64"}, {"sequence-chunks", "off"}};
  }

  // Two steps and an evaluation.
  SegmentedOutcome outcome(const std::string& segments, int64_t host_budget = 0) {
    TrainOptions options = options_;
    options.techniques.pins["recompute-segments"] = segments;
    test::RaceChecker* checker = nullptr;
    TinyRun run(options, *directory_ / "cache.bin", test::checked_cpu(checker), host_budget);
    EXPECT_EQ(run.plan().choices.integer("recompute_segments"), segments == "off" ? 0 : std::stoll(segments));
    run.begin(std::byte{0xff});
    SegmentedOutcome out;
    for (int64_t step = 1; step <= 2; ++step) out.losses.push_back(run.step(step));
    out.losses.push_back(run.evaluate());
    out.state = run.state();
    EXPECT_THAT(checker->races(), testing::IsEmpty());
    EXPECT_EQ(run.executor().arena_high_water(Tier::device), run.plan().arena_bytes);
    return out;
  }

  void expect_equal(std::initializer_list<const char*> segments, int64_t host_budget = 0) {
    const SegmentedOutcome plain = outcome("off", host_budget);
    for (const char* count : segments) {
      SCOPED_TRACE(count);
      const SegmentedOutcome cut = outcome(count, host_budget);
      EXPECT_EQ(cut.losses, plain.losses);
      EXPECT_EQ(cut.state, plain.state);
    }
  }

  std::optional<TemporaryDirectory> directory_;
  TrainOptions options_;
};

TEST_F(RecomputeSegments, AreBitwiseTheRunThatKeepsItsInputs) {
  for (const int layers : {3, 6, 10}) {
    write(layers);
    layers == 3 ? expect_equal({"1"}) : expect_equal({"1", "2"});
  }
}

TEST_F(RecomputeSegments, AreBitwiseTheSameInEachPrecision) {
  write(6);
  for (const char* precision : {"bf16-mixed", "bf16-true", "16-mixed"}) {
    SCOPED_TRACE(precision);
    options_.techniques.precision = precision;
    expect_equal({"1", "2"});
  }
}

TEST_F(RecomputeSegments, UpdateInsideTheBackwardPass) {
  write(6);
  options_.data.micro_batch_size = 6;
  options_.techniques.max_grad_norm = 0;
  options_.techniques.pins["fused-optimizer"] = "on";
  expect_equal({"1", "2"});
}

// Dropout draws the same again.
TEST_F(RecomputeSegments, OfAdaptersAreBitwiseTheSame) {
  write(6);
  options_.techniques.lora.rank = 4;
  options_.techniques.lora.dropout = 0.3;
  expect_equal({"1", "2"});
}

TEST_F(RecomputeSegments, OfExpertsAreBitwiseTheSame) {
  write(6, kTinyExpertsConfig);
  expect_equal({"1", "2"});
}

// Rows of a product may have other bits among fewer rows, and layers that are computed again may be cut where they were
// not before.
TEST_F(RecomputeSegments, InPartsOfTheSequenceFollowTheRunWithout) {
  write(6);
  options_.techniques.pins["sequence-chunks"] = "3";
  const SegmentedOutcome plain = outcome("off");
  for (const char* count : {"1", "2"}) {
    const SegmentedOutcome cut = outcome(count);
    for (size_t i = 0; i < plain.losses.size(); ++i) EXPECT_NEAR(cut.losses[i], plain.losses[i], 1e-5) << count;
  }
}

TEST_F(RecomputeSegments, WithOtherLevelsAreBitwiseTheSame) {
  write(6);
  for (const char* level : {"off", "drop-cheap", "keep-attention"}) {
    SCOPED_TRACE(level);
    options_.techniques.pins["recompute"] = level;
    expect_equal({"1", "2"});
  }
}

TEST_F(RecomputeSegments, WithValuesOnTheHostAreBitwiseTheSame) {
  write(6);
  for (const char* moved : {"offload-activations", "offload-parameters", "offload-optimizer", "offload-gradients"}) {
    SCOPED_TRACE(moved);
    options_.techniques.pins.erase("offload-activations");
    options_.techniques.pins.erase("offload-parameters");
    options_.techniques.pins[moved] = "host";
    expect_equal({"1", "2"}, int64_t{1} << 30);
  }
}

// By the profile's kernels, wherever this runs.
TEST_F(RecomputeSegments, TakeTheBytesOfTheInputsLess) {
  write(10);
  options_.data.micro_batch_size = 6;
  const auto step_bytes = [&](const char* segments) {
    options_.techniques.pins["recompute-segments"] = segments;
    PlanRequest request = training_request(options_, open_model(options_.model.path));
    request.facts = request.profile.facts;
    return search_training_plan(request).plan.program("train_step")->peaks.device;
  };
  const int64_t input = 6 * 32 * 32 * 4, plain = step_bytes("off");
  EXPECT_EQ(plain - step_bytes("1"), (10 - 6) * input);
  EXPECT_EQ(plain - step_bytes("2"), (10 - 5) * input);
}

TEST_F(RecomputeSegments, ThatSaveNothingAreRefused) {
  const auto refusal = [&](int layers, const char* segments) -> std::string {
    write(layers);
    try {
      outcome(segments);
    } catch (const Error& error) {
      return fmt::format("{}; {}", error.what(), error.remedy());
    }
    return "taken";
  };
  EXPECT_EQ(refusal(2, "1"), "--technique recompute-segments=1 cannot be used with 2 layers; leave it out");
  EXPECT_EQ(refusal(6, "4"),
            "--technique recompute-segments=4 saves no more than fewer segments do with 6 layers; at most 2");
}

TEST(SegmentLengths, NeedTheFewestInputs) {
  EXPECT_EQ(segment_lengths(10, 1), (std::vector<int64_t>{5}));
  EXPECT_EQ(segment_lengths(30, 4), (std::vector<int64_t>{8, 7, 6, 5}));
  EXPECT_EQ(most_segments(2), 0);
  EXPECT_EQ(most_segments(3), 1);
  EXPECT_EQ(most_segments(30), 4);
  for (int64_t layers = 3; layers <= 200; ++layers) {
    const auto alive = [&](int64_t segments) {
      const std::vector<int64_t> lengths = segment_lengths(layers, segments);
      int64_t kept = 0, most = 0, behind = layers;
      for (const int64_t length : lengths) {
        EXPECT_GT(length, 0);
        behind -= length, most = std::max(most, ++kept + length - 1);
      }
      EXPECT_GT(behind, 0);
      return std::max(most, kept + behind);
    };
    const int64_t best = most_segments(layers), least = alive(best);
    for (int64_t segments = 1; segments < best; ++segments) EXPECT_GT(alive(segments), least) << layers;
    EXPECT_LE(least * (least - 1) / 2, layers);  // least (least + 1) / 2 layers fit at least
  }
}

}  // namespace
}  // namespace headroom
