// Loss over a token cache with the plan's program "evaluate".
#pragma once

#include "data/batch_reader.h"
#include "runtime/executor.h"

namespace headroom {

struct EvaluationResult {
  double loss = 0;  // mean over targets
  int64_t targets = 0;

  // Joins another set's result: the mean over the targets of both.
  void add(const EvaluationResult& other);
};

// Serves next_batch from the reader that is current.
class BatchPort final : public HostPort {
 public:
  void set_reader(const BatchReader* reader) { reader_ = reader; }
  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch, int64_t seq) override;

 private:
  const BatchReader* reader_ = nullptr;
};

// Runs over the cache in batches of `batch_rows` sequences (at most `max_batches`; 0 = all), micro-batches of
// `micro_batch`. `stop` is asked between batches. No heap call per batch.
EvaluationResult evaluate_cache(Executor& executor, BatchPort& port, const TokenCache& cache, int64_t seq_length,
                                int64_t micro_batch, int64_t batch_rows, int64_t max_batches);

}  // namespace headroom
