// Reading its earlier files takes a resumed run the same memory however long it has run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "../formats/counted_heap.h"
#include "../formats/temporary_directory.h"
#include "train/cut_metrics.h"

namespace headroom {
namespace {

std::string line_of(int64_t step) {
  return fmt::format(
      "{{\"step\": {}, \"loss\": 5.1, \"grad_norm\": 0.25, \"learning_rate\": 0.001, \"tokens\": 4096, \"seconds\": "
      "1.5, "
      "\"tokens_per_second\": 2730.67, \"resident_bytes\": 1073741824}}\n",
      step);
}

TEST(HeapBound, CuttingMetricsDoesNotHoldThem) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "metrics.jsonl";
  constexpr int64_t kSteps = 50'000, kKept = 40'000;
  {
    std::ofstream out(file, std::ios::binary);
    for (int64_t step = 1; step <= kSteps; ++step) out << line_of(step);
    out << std::string(20'000'000, '[');  // a line that no run wrote
    out << "\n{\"step\": 40000, \"eval_loss\": 5}\n";
  }
  bool evaluated = false;
  EXPECT_LT(counted_heap::peak_of([&] { evaluated = cut_metrics(file, kKept); }), int64_t{64} << 10);
  EXPECT_TRUE(evaluated);
  std::string expected;
  for (int64_t step = 1; step <= kKept; ++step) expected += line_of(step);
  expected += "{\"step\": 40000, \"eval_loss\": 5}\n";
  EXPECT_TRUE(read_text(file) == expected);
}

}  // namespace
}  // namespace headroom
