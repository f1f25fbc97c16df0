// Loss over a token cache with the plan's program "evaluate".
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/batch_reader.h"
#include "runtime/executor.h"

namespace headroom {

struct EvaluationResult {
  double loss = 0;  // mean over targets
  int64_t targets = 0;
  std::optional<int64_t> hits;  // targets with the largest logit; only for models that predict classes or masked tokens
  bool classes = false;         // targets are classes of samples, for which perplexity has no meaning

  double accuracy() const {
    return targets > 0 ? static_cast<double>(hits.value_or(0)) / static_cast<double>(targets) : 0;
  }
  // "loss 0.6931, perplexity 2.00": the figures that are meaningful for such targets.
  std::string describe() const;
  // Combines with another set's result: the mean over the targets of both.
  void add(const EvaluationResult& other);
};

// Serves next_batch from the reader that is current.
class BatchPort final : public HostPort {
 public:
  void set_reader(const BatchReader* reader) { reader_ = reader; }
  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch, int64_t seq) override;
  void next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) override;
  void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) override;
  void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) override;

 private:
  const BatchReader* reader_ = nullptr;
};

// Runs over the cache in batches of `batch_rows` sequences, packed ones if `packs` is given (at most `max_batches`; 0 =
// all), in micro-batches of `micro_batch`; `targets` turns them into rows, whose labels are `classes` or tokens. No
// heap call per batch. `progress`, if set, is called before the first batch and after each.
EvaluationResult evaluate_cache(Executor& executor, BatchPort& port, const TokenCache& cache, int64_t seq_length,
                                int64_t micro_batch, int64_t batch_rows, int64_t max_batches,
                                const RowTargets& targets = {}, const PackIndex* packs = nullptr, bool classes = false,
                                const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace headroom
