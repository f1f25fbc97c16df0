#include "weights/evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/bucket_programs.h"

namespace headroom {

void EvaluationResult::add(const EvaluationResult& other) {
  const double both = static_cast<double>(targets + other.targets);
  if (both > 0) loss = (loss * static_cast<double>(targets) + other.loss * static_cast<double>(other.targets)) / both;
  targets += other.targets;
  if (other.hits) hits = hits.value_or(0) + *other.hits;
  classes = classes || other.classes;
}

std::string EvaluationResult::describe() const {
  std::string text = fmt::format("loss {:.4f}", loss);
  if (!classes) text += fmt::format(", perplexity {:.2f}", std::exp(loss));
  if (hits) text += fmt::format(", accuracy {:.4f}", accuracy());
  return text;
}

void BatchPort::next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                           int64_t seq) {
  HR_CHECK(reader_ && seq <= reader_->seq_length(), "no batch of length {} is current", seq);
  reader_->fill(trip * batch, batch, ids, labels);
}

void BatchPort::next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) {
  HR_CHECK(reader_ && seq <= reader_->seq_length(), "no batch of length {} is current", seq);
  reader_->fill_starts(trip * batch, batch, starts);
}

void BatchPort::next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) {
  HR_CHECK(reader_ && seq <= reader_->seq_length(), "no batch of length {} is current", seq);
  reader_->fill_types(trip * batch, batch, types);
}

void BatchPort::next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) {
  HR_CHECK(reader_ && seq <= reader_->seq_length(), "no batch of length {} is current", seq);
  reader_->fill_lengths(trip * batch, lengths);
}

EvaluationResult evaluate_cache(Executor& executor, BatchPort& port, const TokenCache& cache, int64_t seq_length,
                                int64_t micro_batch, int64_t batch_rows, int64_t max_batches,
                                const RowTargets& row_targets, const PackIndex* packs, bool classes,
                                const std::function<void(int64_t done, int64_t total)>& progress) {
  const int64_t samples = packs ? packs->packs() : cache.sequences();
  BatchReader reader(cache, SampleOrder(samples, 0, false), seq_length, batch_rows, row_targets, packs);
  const BucketPrograms programs(executor.plan(), "evaluate");
  port.set_reader(&reader);
  double sum = 0;
  double targets = 0;
  std::optional<double> hits;
  const int64_t all = steps_per_epoch(samples, batch_rows),
                batches = max_batches == 0 ? all : std::min(all, max_batches);
  if (progress) progress(0, batches);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const SampleRange range = samples_of_step(batch, samples, batch_rows);
    reader.begin(range);
    const Trips trips[] = {{"eval_batches", (range.count + micro_batch - 1) / micro_batch}};
    const std::string& program = programs.holding(reader.longest(0, range.count));
    executor.run(program, trips);
    const TensorView result = executor.result(program, 0);
    double buffer[3];
    const std::span<const double> sums =
        executor.get<double>(result, std::span(buffer).first(static_cast<size_t>(result.count())));
    sum += sums[0];
    targets += sums[1];
    if (sums.size() > 2) hits = hits.value_or(0) + sums[2];
    if (progress) progress(batch + 1, batches);
  }
  port.set_reader(nullptr);
  EvaluationResult result{targets > 0 ? sum / targets : 0, static_cast<int64_t>(targets), std::nullopt, classes};
  if (hits) result.hits = static_cast<int64_t>(*hits);
  return result;
}

}  // namespace headroom
