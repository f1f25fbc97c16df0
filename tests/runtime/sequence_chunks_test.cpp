// Parts of the sequence together with values on the host: bitwise the results without the host, with all accesses
// ordered; and a run uses exactly the bytes of its plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "plan_in_chunks.h"
#include "race_checker.h"
#include "tiny_run.h"

namespace headroom {
namespace {

struct ChunkedOutcome {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
  int64_t step_bytes = 0, host_bytes = 0;  // of the device in a step, and of the host
};

void to_the_host(Graph& graph, int64_t depth, bool fused) {
  offload_activations(graph, Tier::host, 3, depth);
  offload_optimizer(graph, Tier::host, depth);
  if (!fused) offload_gradients(graph, Tier::host, depth, true);
  offload_parameters(graph, Tier::host, kEveryLayer, depth);
}

// Two steps in an arena of NaN.
ChunkedOutcome run_chunked(const TrainOptions& options, const std::filesystem::path& scratch,
                           test::ChunkedPlan chunked) {
  test::RaceChecker* checker = nullptr;
  TinyRun run(options, scratch, test::checked_cpu(checker), int64_t{1} << 30, [&](Plan& plan) {
    PlanRequest request = training_request(options, open_model(options.model.path));
    request.facts = plan.facts;
    test::remake(request, chunked, plan);
  });
  run.begin(std::byte{0xff});
  ChunkedOutcome outcome;
  for (int64_t step = 1; step <= 2; ++step) outcome.losses.push_back(run.step(step));
  outcome.losses.push_back(run.evaluate());
  outcome.state = run.state();
  outcome.step_bytes = run.plan().program("train_step")->peaks.device;
  outcome.host_bytes = run.plan().host.arena_bytes;
  EXPECT_THAT(checker->races(), testing::IsEmpty());
  for (const Tier tier : {Tier::device, Tier::host})
    EXPECT_EQ(run.executor().arena_high_water(tier), run.plan().arenas().of(tier)) << tier_name(tier);
  return outcome;
}

TEST(SequenceChunks, OnTheHostAreBitwiseTheSame) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  for (const bool fused : {false, true}) {
    TrainOptions options = tiny_options(directory);
    options.data.micro_batch_size = fused ? 6 : 2;
    options.techniques.max_grad_norm = fused ? 0 : 1;
    options.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "64"}};
    test::ChunkedPlan plan{4, Keep::block_input, fused};
    const ChunkedOutcome plain = run_chunked(options, directory / "cache.bin", plan);
    EXPECT_EQ(plain.host_bytes, 0);
    for (const int64_t depth : {0, 1, 3}) {
      SCOPED_TRACE(fmt::format("fused {}, depth {}", fused, depth));
      plan.offload = [&](Graph& graph) { to_the_host(graph, depth, fused); };
      const ChunkedOutcome offloaded = run_chunked(options, directory / "cache.bin", plan);
      EXPECT_EQ(offloaded.losses, plain.losses);
      EXPECT_EQ(offloaded.state, plain.state);
      EXPECT_GT(offloaded.host_bytes, 0);
    }
  }
}

TEST(SequenceChunks, TakeFewerBytes) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TrainOptions options = tiny_options(directory);
  options.data.max_seq_length = 64;
  options.data.micro_batch_size = 6;
  options.techniques.max_grad_norm = 0;
  options.techniques.pins = {{"recompute", "on"}, {"chunked-loss", "64"}};
  int64_t before = INT64_MAX;
  // At 8, with the scratch of AMX at 4, the gradient of attention, which is not split, may hold the peak.
  const int64_t least = cpu_facts(1).has_bf16_tiles() ? 4 : 8;
  for (const int64_t chunks : {1, 2, 4, 8}) {
    const ChunkedOutcome outcome =
        run_chunked(options, directory / "cache.bin",
                    {chunks, Keep::block_input, true, [](Graph& graph) { to_the_host(graph, 0, true); }});
    EXPECT_LT(outcome.step_bytes, before + (chunks >= least)) << chunks;
    before = outcome.step_bytes;
  }
}

}  // namespace
}  // namespace headroom
