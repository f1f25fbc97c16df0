// The required accuracy of estimates: benchmarks/doctor_data, with the split of case_table.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cases/case_table.h"

namespace headroom::doctor {
namespace {

std::vector<MeasuredCase> all_cases() {
  const std::string folder = std::string(HEADROOM_SOURCE_DIR) + "/benchmarks/doctor_data/";
  std::vector<MeasuredCase> cases = read_cases(folder + "published.tsv");
  for (MeasuredCase& c : read_cases(folder + "cpu_runs.tsv")) cases.push_back(std::move(c));
  return cases;
}

double error_of(const MeasuredCase& c) {
  const Estimate e = estimate(c.job, *find_model_shape(c.model), c.gpu, c.software);
  return std::abs(predicted_bytes(c, e) / c.bytes - 1);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1);
}

TEST(Accuracy, MedianAndNinthDecileHoldOnBothHalves) {
  std::vector<double> all, fit, test;
  int cpu = 0;
  for (const MeasuredCase& c : all_cases()) {
    const double error = error_of(c);
    all.push_back(error);
    (c.fit() ? fit : test).push_back(error);
    cpu += c.source == "cpu" ? 1 : 0;
  }
  EXPECT_GE(cpu, 30);
  EXPECT_GE(all.size(), 85u);
  for (const auto& part : {all, fit, test}) {
    EXPECT_LE(quantile(part, 0.5), 0.08);
    EXPECT_LE(quantile(part, 0.9), 0.20);
  }
}

// Live tensors of real steps (benchmarks/doctor_trace.py): no allocator is involved, so the formulas alone must give
// them. 4-bit bases after PEFT's preparation, blocks with parallel attention and MLP, LitGPT's modules.
TEST(Accuracy, TracedStepsAreWhatTheFormulasSay) {
  const std::string table = std::string(HEADROOM_SOURCE_DIR) + "/benchmarks/doctor_data/traced.tsv";
  std::vector<double> errors;
  for (const MeasuredCase& c : read_cases(table)) {
    errors.push_back(error_of(c));
    EXPECT_LE(errors.back(), 0.05) << c.name;
  }
  ASSERT_GE(errors.size(), 20u);
  EXPECT_LE(quantile(errors, 0.5), 0.01);
  EXPECT_LE(quantile(errors, 0.9), 0.03);
}

TEST(Accuracy, EachSourceHolds) {
  for (const char* source : {"A", "B", "C", "peft", "cpu"}) {
    std::vector<double> errors;
    for (const MeasuredCase& c : all_cases())
      if (c.source == source) errors.push_back(error_of(c));
    ASSERT_FALSE(errors.empty());
    EXPECT_LE(quantile(errors, 0.5), 0.08) << source;
    EXPECT_LE(quantile(errors, 0.9), 0.20) << source;
  }
}

}  // namespace
}  // namespace headroom::doctor
