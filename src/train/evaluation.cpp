#include "train/evaluation.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

void EvaluationResult::add(const EvaluationResult& other) {
  const double both = static_cast<double>(targets + other.targets);
  if (both > 0) loss = (loss * static_cast<double>(targets) + other.loss * static_cast<double>(other.targets)) / both;
  targets += other.targets;
}

void BatchPort::next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                           int64_t seq) {
  HR_CHECK(reader_ && seq == reader_->seq_length(), "no batch of length {} is current", seq);
  reader_->fill(trip * batch, batch, ids, labels);
}

EvaluationResult evaluate_cache(Executor& executor, BatchPort& port, const TokenCache& cache, int64_t seq_length,
                                int64_t micro_batch, int64_t batch_rows, int64_t max_batches) {
  BatchReader reader(cache, SampleOrder(cache.sequences(), 0, false), seq_length, batch_rows);
  port.set_reader(&reader);
  double sum = 0;
  double targets = 0;
  const int64_t batches = steps_per_epoch(cache.sequences(), batch_rows);
  for (int64_t batch = 0; batch < batches && (max_batches == 0 || batch < max_batches); ++batch) {
    const SampleRange range = samples_of_step(batch, cache.sequences(), batch_rows);
    reader.begin(range);
    const Trips trips[] = {{"eval_batches", (range.count + micro_batch - 1) / micro_batch}};
    executor.run("evaluate", trips);
    const double* result = executor.result("evaluate", 0).as<double>();
    sum += result[0];
    targets += result[1];
  }
  port.set_reader(nullptr);
  return {targets > 0 ? sum / targets : 0, static_cast<int64_t>(targets)};
}

}  // namespace headroom
