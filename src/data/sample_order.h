// The order in which samples are visited: a pure function of the global sample index, so that a run resumes from that
// index alone.
#pragma once

#include <cstdint>

namespace headroom {

// Samples are counted from 0 over all epochs. Without shuffling, an epoch visits sequences in file order; with it, in a
// pseudo-random permutation keyed by (seed, epoch): a Feistel network over the next power of four, repeated until the
// result is in range (Black and Rogaway 2002). Needs no table. Thread-safe.
class SampleOrder {
 public:
  // sequences >= 1.
  SampleOrder(int64_t sequences, uint64_t seed, bool shuffle);

  // The sequence of global sample `sample` >= 0. O(1) expected.
  int64_t at(int64_t sample) const;
  int64_t sequences() const { return sequences_; }
  uint64_t seed() const { return seed_; }
  bool shuffles() const { return shuffle_; }

 private:
  int64_t sequences_;
  uint64_t seed_;
  bool shuffle_;
  int half_bits_;
};

// The samples of one optimizer step.
struct SampleRange {
  int64_t first = 0;  // global sample index
  int64_t count = 0;
  int64_t epoch = 0;
};

// Optimizer steps of one epoch: ceil(sequences / global_batch_size).
int64_t steps_per_epoch(int64_t sequences, int64_t global_batch_size);

// The samples of step `step` (from 0). Batches never cross an epoch: the last one of an epoch may be shorter.
SampleRange samples_of_step(int64_t step, int64_t sequences, int64_t global_batch_size);

// The batch that begins at global sample `first` (a resumed run's data position; the batch ends at the epoch's end at
// the latest).
SampleRange samples_from(int64_t first, int64_t sequences, int64_t global_batch_size);

}  // namespace headroom
