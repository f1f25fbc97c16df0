// An order of samples in which neighbours are of similar length.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sample_order.h"
#include "data/token_cache.h"

namespace headroom {

// Takes windows of kBatches batches from a SampleOrder, sorts each by length (the longest first; equal ones in their
// order) and visits its whole batches in a seeded order, with a short one at the epoch's end last. Like SampleOrder a
// pure function of the global sample index, with one window in memory. Used by one thread; `cache` outlives it. No heap
// allocation after construction.
class SampleGroups {
 public:
  static constexpr int64_t kBatches = 64;

  SampleGroups(const TokenCache& cache, SampleOrder order, int64_t batch);

  // The sequence of global sample `sample` >= 0.
  int64_t at(int64_t sample);

  // Heap bytes.
  static int64_t memory_bytes(int64_t batch);

 private:
  struct Row {
    int64_t sequence;
    int64_t length;
    int64_t rank;  // in the order
  };

  void load(int64_t epoch, int64_t window);

  const TokenCache& cache_;
  SampleOrder order_;
  int64_t batch_;
  int64_t loaded_ = -1;  // the first global sample of the window in memory
  std::vector<Row> rows_;
};

}  // namespace headroom
