// Between two steps of a training run headroom's code makes no heap call. oneDNN makes a few small ones for each
// product (the map of its arguments) and frees them; the heap does not grow from step to step.
#include <gtest/gtest.h>
#include <malloc.h>

#include "counting_allocator.h"
#include "engine/train_model.h"
#include "tiny_run.h"

namespace headroom {
namespace {

struct HeapCase {
  const char* precision;
  int64_t threads;
  const char* config = kTinyConfig;
};

void PrintTo(const HeapCase& value, std::ostream* out) {
  *out << value.precision << " threads " << value.threads
       << (value.config == kTinyExpertsConfig ? " with experts" : "");
}

class HeapTripwire : public testing::TestWithParam<HeapCase> {};

TEST_P(HeapTripwire, StepsMakeNoHeapCall) {
  if (!counts_heap_calls()) GTEST_SKIP() << "a sanitizer's allocator is in place";
  const TemporaryDirectory directory;
  write_tiny_model(directory, GetParam().config);
  TrainOptions options = tiny_options(directory);
  options.techniques.precision = GetParam().precision;
  options.machine.threads = GetParam().threads;
  options.schedule.max_steps = 30;  // three epochs, so that the order is shuffled again during the test
  options.data.micro_batch_size = 4;
  std::vector<int64_t> calls(static_cast<size_t>(options.schedule.max_steps) + 1);
  std::vector<size_t> bytes(calls.size());
  TrainEvents events;
  events.step = [&](const StepReport& report) {
    calls[static_cast<size_t>(report.step)] = heap_calls();
    bytes[static_cast<size_t>(report.step)] = ::mallinfo2().uordblks;
  };
  RunControl control;
  const TrainResult result = train_model(options, events, control);
  ASSERT_EQ(result.steps, options.schedule.max_steps);
  for (size_t step = 3; step < calls.size(); ++step) {
    EXPECT_EQ(calls[step] - calls[step - 1], 0) << "heap calls in step " << step;
    EXPECT_EQ(bytes[step], bytes[step - 1]) << "heap bytes in step " << step;
  }
  EXPECT_LE(onednn_calls().most_per_run, 16) << "its arguments";
  EXPECT_LE(onednn_calls().largest_bytes, 1024U) << "no work space";
}

INSTANTIATE_TEST_SUITE_P(Plans, HeapTripwire,
                         testing::Values(HeapCase{"32-true", 1}, HeapCase{"32-true", 2}, HeapCase{"bf16-mixed", 1},
                                         HeapCase{"16-mixed", 1}, HeapCase{"16-true", 2},
                                         HeapCase{"32-true", 2, kTinyExpertsConfig},
                                         HeapCase{"bf16-mixed", 1, kTinyExpertsConfig}),
                         [](const auto& info) {
                           std::string precision = info.param.precision;
                           std::erase(precision, '-');
                           return "of" + precision + "Threads" + std::to_string(info.param.threads) +
                                  (info.param.config == kTinyExpertsConfig ? "Experts" : "");
                         });

TEST(CountingAllocator, Counts) {
  if (!counts_heap_calls()) GTEST_SKIP() << "a sanitizer's allocator is in place";
  const int64_t before = heap_calls();
  const auto value = std::make_unique<std::string>(1000, 'x');
  EXPECT_EQ(heap_calls() - before, 2) << value->size();
}

}  // namespace
}  // namespace headroom
