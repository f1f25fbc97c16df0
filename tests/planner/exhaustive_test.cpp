// The planner's choice against an exhaustive sweep over micro-batch, recomputation, offload and loss chunk: ten pairs
// of a model and a budget. With HEADROOM_TABLE=FILE the table of docs/questions.md is written there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/bytes.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/recompute.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

struct Pair {
  const char* model;
  int64_t sequence;
  int part;  // percent of the way from the least budget to all that the plan without a limit takes
  bool disk;
};

constexpr Pair kPairs[] = {{"smollm2-135m", 512, 2, false},   {"smollm2-135m", 512, 15, false},
                           {"smollm2-135m", 4096, 10, false}, {"gpt2", 1024, 5, false},
                           {"gpt2", 1024, 30, false},         {"bert-base-uncased", 512, 8, false},
                           {"qwen2.5-0.5b", 1024, 4, false},  {"gemma3-1b-it", 1024, 3, false},
                           {"smollm2-135m", 512, 5, true},    {"gpt2", 1024, 10, true}};

// For every two levels, one in the first eighths of the layers and the other in the rest; with a disk, one level in all
// layers.
std::vector<Setting> recompute_settings(int64_t blocks, bool disk) {
  std::vector<Keep> levels = planned_levels();
  levels.insert(levels.end(), {Keep::norms, Keep::no_cheap | Keep::projections});
  std::vector<Setting> out;
  for (const Keep first : levels)
    for (const Keep rest : disk ? std::vector{first} : levels)
      for (int64_t eighth = 2; eighth <= 8; eighth += 2) {
        const Setting setting = keep_setting(blocks, (blocks * eighth + 7) / 8, first, rest);
        if (std::find(out.begin(), out.end(), setting) == out.end()) out.push_back(setting);
      }
  return out;
}

// What is on disk: nothing, or each combination of states, gradients, weights and activations.
std::vector<Candidate> offloads_of(const PlanRequest& request, const Candidate& from) {
  std::vector<Candidate> out{from};
  if (request.disk_budget_bytes == 0) return out;
  for (const Technique* technique : offload_techniques()) {
    const std::vector<Candidate> so_far = out;
    const bool activations = technique == &techniques::offload_activations;
    for (Candidate candidate : so_far) {
      Setting& setting = candidate[*technique];
      setting.tier = Tier::disk;
      if (activations) setting.count = block_count(request.forward);
      if (technique == &techniques::offload_parameters) setting.count = kEveryLayer;
      out.push_back(candidate);
    }
  }
  return out;
}

// The fastest of all candidates whose bounds fit the request's budgets, and their number.
std::pair<double, int64_t> sweep(const PlanRequest& request) {
  Bounder bounder(request);
  const int64_t blocks = block_count(request.forward);
  double best = 1e300;
  int64_t count = 0;
  for (const int64_t micro_batch : {1, 2, 4, 8}) {
    const std::vector<int64_t> chunks{16, 64, 256, 1024, micro_batch * request.seq_length};
    Candidate candidate = most_frugal(request).candidate;
    for (const Technique* technique : offload_techniques()) candidate[*technique] = {};
    candidate[*find_technique("sequence-chunks")] = {};
    candidate[techniques::micro_batch].count = micro_batch;
    candidate[techniques::prefetch].count = 1;
    for (const Setting& recompute : recompute_settings(blocks, request.disk_budget_bytes > 0)) {
      candidate[techniques::recompute] = recompute;
      for (const Candidate& placed : offloads_of(request, candidate)) {
        for (const Bound& bound : bounder.bounds(placed, {&placed, 1}, chunks)) {
          ++count;
          if (fits(tier_peaks(bound.arenas, request), request)) best = std::min(best, bound.step_seconds);
        }
      }
    }
  }
  return {best, count};
}

std::string table_row(const Pair& pair, const Plan& plan, double best, int64_t count) {
  return fmt::format("| {} | {} | {}{} | {} | {:.3f} | {:.3f} | {:+.2f} % | {}; loss chunk {}; recompute {} |\n",
                     pair.model, pair.sequence, format_bytes(plan.budget_bytes), pair.disk ? ", disk" : "", count, best,
                     plan.step_seconds, 100 * (plan.step_seconds / best - 1), plan.choices.micro_batch,
                     plan.choices.integer("loss_chunk_rows"), plan.choices.text("recompute"));
}

class Exhaustive : public testing::TestWithParam<size_t> {};

TEST_P(Exhaustive, SweepIsAtMostFivePercentFaster) {
  const Pair& pair = kPairs[GetParam()];
  TrainOptions options = fixed_options();
  options.data.max_seq_length = pair.sequence;
  options.data.global_batch_size = 8;
  if (pair.disk) options.machine.disk_directory = ".", options.machine.disk_memory = kPlenty;
  const ModelFiles model = open_model(published(pair.model));
  const Plan plenty = plan(options, model).plan;
  options.machine.memory =
      plenty.minimum_bytes + (plenty.peak_bytes - plenty.minimum_bytes) * static_cast<int64_t>(pair.part) / 100;
  const PlanRequest request = fixed_request(options, model);
  const Plan pick = search_training_plan(request).plan;
  ASSERT_TRUE(pick.feasible);
  const auto [best, count] = sweep(request);
  EXPECT_LT(best, 1e300);
  EXPECT_LE(pick.step_seconds, 1.05 * best);
  if (const char* file = std::getenv("HEADROOM_TABLE"))
    std::ofstream(file, std::ios::app) << table_row(pair, pick, best, count);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Exhaustive, testing::Range<size_t>(0, std::size(kPairs)),
                         [](const testing::TestParamInfo<size_t>& param) {
                           const Pair& pair = kPairs[param.param];
                           std::string name = fmt::format("{}_{}_{}", pair.model, pair.sequence, pair.part);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name + (pair.disk ? "_disk" : "");
                         });

}  // namespace
}  // namespace headroom::test
