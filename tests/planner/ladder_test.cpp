// The table of techniques, alone and combined.
#include "engine/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planning_case.h"

namespace headroom::test {
namespace {

TrainOptions options_of_eight_rows() {
  TrainOptions options = fixed_options(int64_t{100} << 20);
  options.data.global_batch_size = 8;
  return options;
}

std::vector<std::string> names_of(const std::vector<LadderRow>& rows) {
  std::vector<std::string> names;
  for (const LadderRow& row : rows) names.push_back(row.name);
  return names;
}

const LadderRow& row_of(const std::vector<LadderRow>& rows, const std::string& name) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const LadderRow& row) { return row.name == name; });
  HR_CHECK(at != rows.end(), "no row {}", name);
  return *at;
}

TEST(Ladder, BeginsWithARunThatTakesNothing) {
  const std::vector<LadderRow> rows = technique_ladder(options_of_eight_rows(), small_model());
  const LadderRow& baseline = rows.front();
  EXPECT_EQ(baseline.name, "baseline");
  EXPECT_TRUE(baseline.techniques.empty());
  EXPECT_EQ(baseline.saves_bytes, 0);
  EXPECT_EQ(baseline.costs_seconds, 0);
  for (const LadderRow& row : rows) {
    EXPECT_EQ(row.saves_bytes, baseline.peak_bytes - row.peak_bytes) << row.name;
    EXPECT_EQ(row.fits, row.peak_bytes <= int64_t{100} << 20) << row.name;
  }
  EXPECT_GT(row_of(rows, "recompute").saves_bytes, 0);
  EXPECT_GT(row_of(rows, "recompute").costs_seconds, 0);
  EXPECT_EQ(row_of(rows, "micro-batch").kind, TechniqueKind::reassociating);
  EXPECT_EQ(row_of(rows, "lora").techniques, (std::map<std::string, std::string>{{"lora", "16"}}));
}

TEST(Ladder, CodesOfTheBaseGoBesideAdapters) {
  const std::vector<LadderRow> rows = technique_ladder(options_of_eight_rows(), small_model());
  EXPECT_THAT(names_of(rows), testing::Not(testing::Contains("quantize-weights")));
  EXPECT_EQ(rows.back().techniques.at("quantize-weights"), "nf4");
  EXPECT_EQ(rows.back().techniques.at("lora"), "16");
  EXPECT_GT(rows.back().saves_bytes, rows[rows.size() - 2].saves_bytes);
}

TEST(Ladder, HasNarrowStatesCodesAndCompressedActivations) {
  const std::vector<LadderRow> rows = technique_ladder(options_of_eight_rows(), small_model());
  EXPECT_EQ(row_of(rows, "optim").techniques, (std::map<std::string, std::string>{{"optim", "8-bit"}}));
  EXPECT_GT(row_of(rows, "optim").saves_bytes, 0);
  EXPECT_GT(row_of(rows, "compress-activations").saves_bytes, 0);
  EXPECT_GT(row_of(rows, "quantize-training").saves_bytes, 0);
  EXPECT_THAT(names_of(rows), testing::Contains("qat"));
  // Adapters leave no weight to train as codes: the row with both is omitted, the others stay.
  for (const LadderRow& row : rows)
    EXPECT_FALSE(row.techniques.contains("lora") && row.techniques.contains("quantize-training")) << row.name;
}

TEST(Ladder, AnOptimizerWithoutNarrowStatesHasNoSuchRow) {
  TrainOptions options = options_of_eight_rows();
  options.optimizer.optim = "adafactor";
  EXPECT_THAT(names_of(technique_ladder(options, small_model())), testing::Not(testing::Contains("optim")));
}

// Clipping needs every gradient before the first update; there is no lower tier; one row has no smaller micro-batch.
TEST(Ladder, LeavesOutWhatDoesNotApply) {
  TrainOptions options = options_of_eight_rows();
  EXPECT_THAT(names_of(technique_ladder(options, small_model())),
              testing::AllOf(testing::Not(testing::Contains("fused-optimizer")),
                             testing::Not(testing::Contains("offload-optimizer"))));
  options.techniques.max_grad_norm = 0;
  options.data.global_batch_size = 1;
  options.machine.disk_directory = ".";
  options.machine.disk_memory = int64_t{1} << 30;
  EXPECT_THAT(names_of(technique_ladder(options, small_model())),
              testing::AllOf(testing::Contains("fused-optimizer"), testing::Contains("offload-optimizer"),
                             testing::Not(testing::Contains("micro-batch"))));
}

TEST(Ladder, TogetherEachRowHasOneMore) {
  const std::vector<LadderRow> rows = technique_ladder(options_of_eight_rows(), small_model());
  size_t taken = 1;
  int64_t peak = rows.front().peak_bytes;
  for (const LadderRow& row : rows) {
    if (!row.name.starts_with("together: ")) continue;
    EXPECT_EQ(row.techniques.size(), ++taken);
    if (row.kind == TechniqueKind::lossy) continue;  // 16-bit copies may take more than the remaining activations
    EXPECT_LE(row.peak_bytes, peak) << row.name;
    peak = row.peak_bytes;
  }
  EXPECT_GT(taken, 3u);
  EXPECT_EQ(Json::parse(ladder_json(rows)).at("rungs").size(), rows.size());
}

}  // namespace
}  // namespace headroom::test
