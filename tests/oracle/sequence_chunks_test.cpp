// Layers computed for parts of the sequence: loss and gradients are PyTorch's, like the plain run's; only sums over
// rows have another order.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "../runtime/plan_in_chunks.h"
#include "passes/lora.h"
#include "passes/recompute.h"
#include "training_run.h"

namespace headroom::test {
namespace {

// Against the plain run: relative for losses; for gradients, relative to their norm and to that over all gradients.
struct Tolerance {
  double loss = 2e-6;
  double gradient = 2e-5;
  double floor = 1e-7;
};

void expect_near(const StepOutcome& outcome, const StepOutcome& expected, const Tolerance& tolerance) {
  EXPECT_EQ(outcome.targets, expected.targets);
  EXPECT_NEAR(outcome.loss, expected.loss, tolerance.loss * expected.loss);
  ASSERT_EQ(outcome.gradients.size(), expected.gradients.size());
  double total = 0;
  for (const auto& [name, values] : expected.gradients) total = std::hypot(total, l2_norm(values));
  for (const auto& [name, values] : expected.gradients)
    EXPECT_LE(l2_distance(outcome.gradients.at(name), values),
              tolerance.gradient * l2_norm(values) + tolerance.floor * total)
        << name;
}

class SequenceChunks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { golden_ = GoldenCase::open(GetParam()); }

  // The sequence in this many parts; 1: whole.
  static TrainOptions in_chunks(TrainOptions options, int64_t chunks, Keep keep) {
    options.techniques.pins["sequence-chunks"] = chunks > 1 ? std::to_string(chunks) : "off";
    options.techniques.pins["recompute"] = keep_name(keep);
    return options;
  }

  StepOutcome outcome(const TrainOptions& options) {
    TrainingRun run(golden_, options);
    StepOutcome outcome = run.step();
    evaluated_ = run.evaluate();
    return outcome;
  }

  GoldenCase golden_;
  double evaluated_ = 0;
};

TEST_P(SequenceChunks, GiveTorchsLossAndGradients) {
  for (const auto& [chunks, micro_batch, keep] : {std::tuple<int64_t, int64_t, Keep>{2, golden_.rows(), Keep::all},
                                                  {3, 1, Keep::block_input},
                                                  {4, 2, Keep::no_cheap},
                                                  {3, 2, Keep::no_attention}}) {
    SCOPED_TRACE(fmt::format("{} chunks, micro-batch {}, {}", chunks, micro_batch, keep_name(keep)));
    TrainOptions options = plain_options(golden_);
    options.data.micro_batch_size = micro_batch;
    const StepOutcome cut = outcome(in_chunks(options, chunks, keep));
    EXPECT_NEAR(evaluated_, golden_.loss, 2e-6 * golden_.loss);
    expect_near(cut, {golden_.loss, static_cast<double>(golden_.targets), 0, golden_.gradients()}, {});
    expect_near(cut, outcome(in_chunks(options, 1, keep)), {});
  }
}

// Rows have the same bits with fewer other rows; the sum of their losses, in f64, has another order.
TEST_P(SequenceChunks, GiveTheForwardPassOfThePlainRun) {
  for (const char* precision : {"32-true", "bf16-mixed"}) {
    TrainOptions options = plain_options(golden_);
    options.techniques.precision = precision;
    outcome(in_chunks(options, 1, Keep::block_input));
    const double plain = evaluated_;
    for (const int64_t chunks : {2, 3, 4}) {
      outcome(in_chunks(options, chunks, Keep::block_input));
      EXPECT_NEAR(evaluated_, plain, 1e-14 * plain) << precision << ", " << chunks << " chunks";
    }
  }
}

// The same parts of a longer sequence, in the programs of a bucket with the rows' length.
TEST_P(SequenceChunks, OfShorterSequencesGiveTorchsLossAndGradients) {
  TrainOptions options = plain_options(golden_);
  options.data.max_seq_length = golden_.row_length() + 7;
  TrainingRun run(golden_, options, {}, [&](const PlanRequest& request, Plan& plan) {
    remake(request, {5, Keep::block_input, false, {}, golden_.row_length()}, plan);
  });
  const StepOutcome cut = run.step();
  EXPECT_NEAR(run.evaluate(), golden_.loss, 2e-6 * golden_.loss);
  expect_near(cut, {golden_.loss, static_cast<double>(golden_.targets), 0, golden_.gradients()}, {});
}

TEST_P(SequenceChunks, UpdateInsideTheBackwardPass) {
  TrainOptions options = plain_options(golden_);
  options.schedule.learning_rate = 1e-3;  // an update before the weight's last reader would show in later gradients
  options.techniques.pins["fused-optimizer"] = "on";
  expect_near(outcome(in_chunks(options, 3, Keep::block_input)),
              {golden_.loss, static_cast<double>(golden_.targets), 0, golden_.gradients()}, {});
}

// If a sum in another order rounds to another bf16, later numbers differ.
TEST_P(SequenceChunks, InBf16MixedAreNearThePlainRun) {
  TrainOptions options = plain_options(golden_);
  options.techniques.precision = "bf16-mixed";
  const StepOutcome plain = outcome(in_chunks(options, 1, Keep::block_input));
  expect_near(outcome(in_chunks(options, 3, Keep::block_input)), plain, {1e-4, 1e-2, 1e-4});
}

// Adapters away from their start, where half of the gradients are zero.
TEST_P(SequenceChunks, OfAdaptersAreThePlainRuns) {
  TrainOptions options = plain_options(golden_);
  options.techniques.lora.rank = 4;
  const auto moved = [&](int64_t chunks) {
    TrainingRun run(golden_, in_chunks(options, chunks, Keep::block_input));
    for (const PersistentTensor& tensor : run.plan().tensors) {
      if (!is_lora_name(tensor.name)) continue;
      std::vector<float> direction(static_cast<size_t>(element_count(tensor.place.type.dims)));
      for (size_t i = 0; i < direction.size(); ++i) direction[i] = static_cast<float>(i % 17) - 8;
      run.move(tensor.name, direction, 0.002);
    }
    return run.step();
  };
  expect_near(moved(3), moved(1), {});
}

INSTANTIATE_TEST_SUITE_P(Cases, SequenceChunks,
                         testing::Values("llama_gqa_tied", "qwen2_bias", "gpt2", "qwen3", "olmo2", "gemma2", "gpt_neox",
                                         "phi3_longrope", "starcoder2", "bert_masked", "bert_classes", "qwen3_moe",
                                         "llama_padding"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headroom::test
