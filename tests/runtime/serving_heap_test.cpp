// A server's steps make no heap call after each size of step has run once.
#include <gtest/gtest.h>

#include "counting_allocator.h"
#include "engine/serving.h"
#include "tiny_run.h"

namespace headroom {
namespace {

// `rows` rows of two sequences, with the logits of the last ones.
Step step_of(const std::vector<std::vector<int32_t>>& tables, int32_t rows) {
  Step step;
  for (const std::vector<int32_t>& table : tables) step.tables.push_back(table);
  for (int32_t row = 0; row < rows; ++row) step.rows.push_back({row * 7 % 250, row / 2, row % 2});
  step.wanted = {rows - 1};
  return step;
}

TEST(ServingHeap, StepsMakeNoHeapCall) {
  if (!counts_heap_calls()) GTEST_SKIP() << "a sanitizer's allocator is in place";
  const TemporaryDirectory directory;
  for (const char* config : {kTinyConfig, kTinyExpertsConfig}) {
    write_tiny_model(directory, config);
    InferenceOptions options;
    options.model = directory / "model";
    options.machine.memory = int64_t{64} << 20;
    options.machine.threads = 2;
    options.machine.profile = "cpu-avx2";
    ServedModel model(options, plan_serving(options, {}));
    StepRunner& runner = model.runner();
    const std::vector<std::vector<int32_t>> tables{{0, 1, 2, 3}, {4, 5, 6, 7}};
    std::vector<Step> steps;
    for (const int32_t rows : {1, 2, 5, 16, 33, 100}) steps.push_back(step_of(tables, rows));
    for (const Step& step : steps) runner.run(step);
    const int64_t before = heap_calls();
    for (const Step& step : steps) runner.run(step);
    EXPECT_EQ(heap_calls() - before, 0);
    std::filesystem::remove_all(directory / "model");
  }
}

}  // namespace
}  // namespace headroom
