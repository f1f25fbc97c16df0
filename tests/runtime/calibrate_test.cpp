// What a calibration finds, and one profile of several rounds.
#include "runtime/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/registry.h"
#include "runtime/calibrate/median.h"
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
  const Profile profile = calibrate(*device, facts, "this-machine", progress, small_calibration());
  EXPECT_EQ(last, 1);
  std::set<std::string> ops;
  for (const ProductSample& sample : profile.products) ops.insert(sample.op);
  for (const StreamRate& rate : profile.streams) ops.insert(rate.op);
  for (const char* op : {"linear", "linear_dx", "linear_dw", "linear_residual", "linear_cross_entropy_grad", "rms_norm",
                         "swiglu_grad", "gelu", "split", "dropout", "bias_grad", "sum_squares"})
    EXPECT_TRUE(ops.contains(op)) << op;
  ASSERT_EQ(profile.attention.size(), 2u);
  ASSERT_EQ(profile.in_sequence.size(), 2u);
  EXPECT_EQ(profile.in_sequence[0].dtype, DType::f32);
  EXPECT_EQ(profile.in_sequence[1].dtype, DType::bf16);
  for (const SequenceFactor& sequence : profile.in_sequence) EXPECT_GT(sequence.factor, 0);
}

TEST(Calibrate, TheMedianOfTheRoundsCounts) {
  Profile round;
  round.products = {{"linear", DType::f32, 8, 8, 8, 10, ""}};
  round.attention = {{DType::f32, 20, 30, 0, 0}};
  round.streams = {{"add", DType::f32, 40}};
  round.in_sequence = {{DType::f32, 1.1}};
  round.launch_seconds = 5;
  Profile slow = round, fast = round;
  slow.products[0].flops_per_second = 1, fast.products[0].flops_per_second = 11;
  slow.attention[0].forward = 2, slow.attention[0].backward = 40, fast.attention[0].backward = 31;
  slow.streams[0].bytes_per_second = 4, fast.streams[0].bytes_per_second = 39;
  slow.in_sequence[0].factor = 9, fast.in_sequence[0].factor = 1.2;
  slow.launch_seconds = 9, fast.launch_seconds = 4;
  const Profile median = median_of({slow, round, fast});
  EXPECT_EQ(median.products[0].flops_per_second, 10);
  EXPECT_EQ(median.attention[0].forward, 20);
  EXPECT_EQ(median.attention[0].backward, 31);
  EXPECT_EQ(median.streams[0].bytes_per_second, 39);
  EXPECT_EQ(median.in_sequence[0].factor, 1.2);
  EXPECT_EQ(median.launch_seconds, 5);
}

// x = x + y, twice forward and once backward, on two copies.
TEST(Calibrate, ASequenceRunsOverTensorsOfItsOwn) {
  const DeviceFacts facts = cpu_facts(1);
  const std::unique_ptr<Device> device = make_cpu_device(facts);
  CalibrationSizes sizes = small_calibration();
  sizes.buffer_bytes = 5 * 2 * 4096;  // what the two copies take, and nothing more
  TimedCalls calls(*device, facts, sizes);
  const ConcreteType x{DType::f32, {1024}};
  const TimedCalls::Sequence sequence{{x, x}, {{"add", {}, {0, 1}}, {"add", {}, {2, 1}}}, {{"add", {}, {3, 2}}}};
  int seen = 0;
  const double seconds = calls.sequence_seconds(sequence, 2, [&](const Op& op, const OpCall& call) {
    EXPECT_EQ(op.name(), "add");
    EXPECT_EQ(call.inputs.size(), 2u);
    ++seen;
  });
  EXPECT_EQ(seen, 3);
  EXPECT_GT(seconds, 0);
  EXPECT_THROW(calls.sequence_seconds(sequence, 3, [](const Op&, const OpCall&) {}), std::exception);
}

}  // namespace
}  // namespace headroom
