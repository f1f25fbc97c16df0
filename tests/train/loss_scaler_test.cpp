// How a loss scale moves, compared with torch.amp.GradScaler and DeepSpeed's DynamicLossScaler.
#include "train/loss_scaler.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace headroom {
namespace {

LossScaleOptions preset(const std::string& name, int64_t window = -1) {
  LossScaleOptions options;
  options.preset = name;
  options.loss_scale_window = window;
  return options;
}

// The scale after each step: '+' finite, '-' not.
std::string path(const LossScaleOptions& options, const std::string& steps) {
  const LossScaler scaler(options);
  LossScaleState state = scaler.initial();
  std::string text;
  for (const char step : steps) {
    const bool goes_on = scaler.update(step == '+', state);
    text += fmt::format("{}{}", text.empty() ? "" : " ", goes_on ? fmt::format("{}", state.scale) : "ends");
  }
  return text;
}

TEST(LossScaler, BeginsAsTheirs) {
  EXPECT_EQ(LossScaler(preset("torch")).initial().scale, 65536);
  EXPECT_EQ(LossScaler(preset("deepspeed")).initial().scale, 65536);
  EXPECT_EQ(LossScaler().initial(), LossScaleState{});
}

TEST(LossScaler, HalvesAtOnceAndDoublesAfterAWindowOfGoodSteps) {
  EXPECT_EQ(path(preset("torch", 3), "-+++++++-+++"),
            "32768 32768 32768 65536 65536 65536 131072 131072 65536 65536 65536 131072");
  EXPECT_EQ(path(preset("torch", 3), "++-++-"), "65536 65536 32768 32768 32768 16384");  // the window restarts
}

TEST(LossScaler, WindowsOfTheirPresets) {
  for (const auto& [name, window] : {std::pair("torch", 2000), {"deepspeed", 1000}}) {
    const LossScaler scaler(preset(name));
    LossScaleState state = scaler.initial();
    for (int step = 1; step < window; ++step) scaler.update(true, state);
    EXPECT_EQ(state.scale, 65536) << name;
    scaler.update(true, state);
    EXPECT_EQ(state.scale, 131072) << name;
  }
}

// DeepSpeed forgives the first overflow, and again after the scale has grown.
TEST(LossScaler, HysteresisForgives) {
  EXPECT_EQ(path(preset("deepspeed", 3), "--+--"), "65536 32768 32768 16384 8192");
  EXPECT_EQ(path(preset("deepspeed", 2), "-++-+--"), "65536 65536 131072 131072 131072 65536 32768");
}

TEST(LossScaler, EndsAtItsLeast) {
  LossScaleOptions options = preset("torch");
  options.initial_scale_power = 2;
  options.min_loss_scale = 1.5;
  EXPECT_EQ(path(options, "---+-"), "2 1.5 ends 1.5 ends");
  options.loss_scale = 128;  // a fixed scale neither moves nor ends the run
  EXPECT_EQ(path(options, "+--+"), "128 128 128 128");
}

TEST(LossScaler, CountsWhatWasLeftOut) {
  const LossScaler scaler(preset("deepspeed"));
  LossScaleState state = scaler.initial();
  for (const bool finite : {false, true, false, true, true}) scaler.update(finite, state);
  EXPECT_EQ(state.skipped, 2);
  EXPECT_EQ(state.good_steps, 2);
}

TEST(LossScaler, NeverGrowsOutOfFp32) {
  LossScaleOptions options = preset("torch", 1);
  const LossScaler scaler(options);
  LossScaleState state = scaler.initial();
  for (int step = 0; step < 200; ++step) scaler.update(true, state);
  EXPECT_EQ(state.scale, 0x1p127);
}

std::string refusal(const LossScaleOptions& options, bool scales = true) {
  try {
    check_options(options, scales);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(LossScaleOptions, AreCheckedByName) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal(preset("deepspeed", 1)), "");
  EXPECT_NE(refusal(preset("apex")).find("--fp16-preset"), std::string::npos);
  EXPECT_NE(refusal(preset("torch", 0)).find("--fp16-loss-scale-window"), std::string::npos);
  LossScaleOptions options;
  options.loss_scale = -1;
  EXPECT_NE(refusal(options).find("--fp16-loss-scale"), std::string::npos);
  options = {};
  options.initial_scale_power = 33;
  EXPECT_NE(refusal(options).find("--fp16-initial-scale-power"), std::string::npos);
  options = {};
  options.hysteresis = 0;
  EXPECT_NE(refusal(options).find("--fp16-hysteresis"), std::string::npos);
  options = {};
  options.min_loss_scale = 0;
  EXPECT_NE(refusal(options).find("--fp16-min-loss-scale"), std::string::npos);
}

TEST(LossScaleOptions, NeedAPrecisionThatScales) {
  EXPECT_EQ(refusal({}, false), "");
  EXPECT_NE(refusal(preset("deepspeed"), false).find("--fp16-preset without --precision 16-mixed"), std::string::npos);
}

TEST(LossScaleOptions, AreRecordedInWords) {
  EXPECT_EQ(text_of({}), "torch");
  LossScaleOptions options = preset("deepspeed", 10);
  options.loss_scale = 8;
  EXPECT_EQ(text_of(options), "deepspeed,loss-scale=8,loss-scale-window=10");
}

}  // namespace
}  // namespace headroom
