// What a calibration measures, and which measurements it treats as undisturbed.
#include "runtime/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <set>

#include "base/threads.h"
#include "ops/registry.h"
#include "runtime/calibrate/samples.h"
#include "runtime/calibrate/timed_call.h"
#include "small_calibration.h"

namespace headroom {
namespace {

TEST(Calibrate, MeasuresEveryRateOfAProfile) {
  const DeviceFacts facts = cpu_facts(2);
  const std::unique_ptr<Device> device = make_cpu_device(facts);
  double last = 0;
  const auto progress = [&](double share) {
    EXPECT_GT(share, last);
    last = share;
  };
  const Profile profile = calibrate(*device, facts, "this-machine", progress, small_calibration(), process_reading);
  EXPECT_DOUBLE_EQ(last, 1);
  std::set<std::string> ops;
  for (const ProductSample& sample : profile.products) ops.insert(sample.op);
  for (const StreamRate& rate : profile.streams) ops.insert(rate.op);
  for (const char* op : {"linear", "linear_dx", "linear_dw", "linear_residual", "linear_cross_entropy_grad", "rms_norm",
                         "swiglu_grad", "gelu", "split", "dropout", "bias_grad", "sum_squares"})
    EXPECT_TRUE(ops.contains(op)) << op;
  for (const char* multiply : {"int8", "int8-blocks"})
    EXPECT_TRUE(std::any_of(profile.products.begin(), profile.products.end(), [&](const ProductSample& sample) {
      return sample.multiply == multiply;
    })) << multiply;
  ASSERT_EQ(profile.attention.size(), 2u);
  ASSERT_EQ(profile.in_sequence.size(), 2u);
  EXPECT_EQ(profile.in_sequence[0].dtype, DType::f32);
  EXPECT_EQ(profile.in_sequence[1].dtype, DType::bf16);
  for (const SequenceFactor& sequence : profile.in_sequence) EXPECT_GT(sequence.factor, 0);
}

// A machine on which every timing takes a tick of about a millisecond, and ten while others are busy; sums of ticks are
// exact.
constexpr double kTick = 1.0 / 1024;
class FakeMachine {
 public:
  Stopwatch stopwatch() {
    return [this] {
      const double seconds = busy ? 10 * kTick : kTick;
      now_.seconds += seconds;
      now_.processor_seconds += kTick;
      if (busy && switches) ++now_.forced_switches;
      return now_;
    };
  }
  bool busy = false;
  bool switches = true;  // whether a busy machine switches contexts; otherwise only the lost time shows

 private:
  Reading now_;
};

// A calibration during which others are busy while `busy(step)`; step is the number of half rounds done.
Profile calibrated(FakeMachine& machine, const std::function<bool(int)>& busy,
                   const CalibrationSizes& sizes = small_calibration()) {
  const DeviceFacts facts = cpu_facts(threads());
  const std::unique_ptr<Device> device = make_cpu_device(facts);
  int step = -1;  // warming up
  const auto progress = [&](double) { machine.busy = busy(++step); };
  return calibrate(*device, facts, "this-machine", progress, sizes, machine.stopwatch());
}

constexpr int kHalves = 2;  // steps per round

TEST(Calibrate, WhatAQuietMachineSaysIsUndisturbed) {
  FakeMachine machine;
  const Profile profile = calibrated(machine, [](int) { return false; });
  EXPECT_EQ(profile.remark(), "");
  EXPECT_DOUBLE_EQ(profile.launch_seconds, kTick);
}

TEST(Calibrate, TimingsOfABusySpellDoNotCount) {
  FakeMachine quiet;
  const std::string expected = profile_json(calibrated(quiet, [](int) { return false; }));
  for (int round : {0, 1, 2}) {
    FakeMachine machine;
    machine.switches = round != 1;
    const Profile profile = calibrated(machine, [&](int step) { return step / kHalves == round; });
    EXPECT_EQ(profile_json(profile), expected) << "busy in round " << round;
  }
}

TEST(Calibrate, DisturbedPointsAreTimedAgain) {
  FakeMachine quiet, machine;
  const Profile profile = calibrated(machine, [&](int step) { return step < 3 * kHalves; });
  EXPECT_EQ(profile_json(profile), profile_json(calibrated(quiet, [](int) { return false; })));
}

TEST(Calibrate, SaysWhereThereWasNoUndisturbedTiming) {
  FakeMachine machine;
  const Profile profile = calibrated(machine, [](int step) { return step % kHalves == 0; });  // the products' half
  for (const ProductSample& sample : profile.products) EXPECT_TRUE(sample.disturbed) << sample.op;
  for (const StreamRate& rate : profile.streams) EXPECT_FALSE(rate.disturbed) << rate.op;
  EXPECT_TRUE(profile.disturbed.empty());
  const std::string count = fmt::format("{} of ", profile.products.size());
  EXPECT_NE(profile.remark().find(count), std::string::npos) << profile.remark();
  const Profile all = calibrated(machine, [](int) { return true; });
  EXPECT_EQ(all.disturbed.size(), 5u);
  for (const SequenceFactor& sequence : all.in_sequence) EXPECT_TRUE(sequence.disturbed);
  EXPECT_NE(all.remark().find("headroom profile"), std::string::npos) << all.remark();
}

TEST(Calibrate, EndsInTimeOnABusyMachine) {
  FakeMachine machine, quiet;
  CalibrationSizes sizes = small_calibration();
  sizes.most_seconds = kTick;  // reached at the first point of the first round
  const Profile profile = calibrated(
      machine, [](int step) { return step < kHalves; }, sizes);
  for (const ProductSample& sample : profile.products) EXPECT_TRUE(sample.disturbed) << sample.op;
  EXPECT_EQ(calibrated(
                quiet, [](int) { return false; }, sizes)
                .remark(),
            "")
      << "each point has its first timings";
}

TEST(Samples, TheMedianOfTheUndisturbedCounts) {
  Samples samples;
  EXPECT_TRUE(samples.empty());
  samples.add({9, true});
  samples.add({7, true});
  EXPECT_FALSE(samples.empty());
  EXPECT_TRUE(samples.disturbed());
  EXPECT_EQ(samples.seconds(), 7) << "the least, as others took of each";
  for (double seconds : {3.0, 1.0, 2.0}) {
    EXPECT_FALSE(samples.settled());
    samples.add({seconds, false});
    samples.add({0.5, true});
  }
  EXPECT_TRUE(samples.settled());
  EXPECT_FALSE(samples.disturbed());
  EXPECT_EQ(samples.seconds(), 2);
}

TEST(Stopwatch, TellsADisturbedTiming) {
  const Reading begin{10, 5, 7};
  EXPECT_FALSE(between(begin, {10.1, 5.1, 7}).disturbed);
  EXPECT_FALSE(between(begin, {10.1, 5.0985, 7}).disturbed) << "interrupts take a little";
  EXPECT_TRUE(between(begin, {10.1, 5.1, 8}).disturbed) << "a thread was switched away";
  EXPECT_TRUE(between(begin, {10.1, 5.09, 7}).disturbed) << "a tenth of the time without a CPU";
  EXPECT_FALSE(between(begin, {10.00001, 5, 7}).disturbed) << "shorter than what can be told";
  EXPECT_DOUBLE_EQ(between(begin, {10.1, 5.1, 8}).seconds, 10.1 - 10);
}

// x = x + y, twice forward and once backward, on two copies.
TEST(Calibrate, ASequenceRunsOverTensorsOfItsOwn) {
  const DeviceFacts facts = cpu_facts(1);
  const std::unique_ptr<Device> device = make_cpu_device(facts);
  CalibrationSizes sizes = small_calibration();
  sizes.buffer_bytes = 5 * 2 * 4096;  // exactly the memory of the two copies
  TimedCalls calls(*device, facts, sizes, process_reading);
  const ConcreteType x{DType::f32, {1024}};
  const TimedCalls::Sequence sequence{{x, x}, {{"add", {}, {0, 1}}, {"add", {}, {2, 1}}}, {{"add", {}, {3, 2}}}};
  int seen = 0;
  const double seconds = calls.sequence_seconds(sequence, 2, [&](const Op& op, const OpCall& call) {
    EXPECT_EQ(op_name(op), "add");
    EXPECT_EQ(call.inputs.size(), 2u);
    ++seen;
  });
  EXPECT_EQ(seen, 3);
  EXPECT_GT(seconds, 0);
  calls.begin();
  EXPECT_THROW(calls.sequence_seconds(sequence, 3, [](const Op&, const OpCall&) {}), std::exception);
}

}  // namespace
}  // namespace headroom
