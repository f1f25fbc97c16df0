#include "data/sample_order.h"

#include <algorithm>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr int kRounds = 8;

// A permutation of [0, 4^half_bits).
uint64_t feistel(uint64_t x, int half_bits, uint64_t key) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = x >> half_bits, right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (mix64(right ^ mix64(key + static_cast<uint64_t>(round))) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

SampleOrder::SampleOrder(int64_t sequences, uint64_t seed, bool shuffle)
    : sequences_(sequences), seed_(seed), shuffle_(shuffle), half_bits_(0) {
  HR_CHECK(sequences >= 1 && sequences <= int64_t{1} << 60, "{} sequences", sequences);
  while ((int64_t{1} << (2 * half_bits_)) < sequences) ++half_bits_;
}

int64_t SampleOrder::at(int64_t sample) const {
  HR_CHECK(sample >= 0, "sample {}", sample);
  const int64_t epoch = sample / sequences_;
  const int64_t place = sample % sequences_;
  if (!shuffle_) return place;
  const uint64_t key = mix64(mix64(seed_) + static_cast<uint64_t>(epoch));
  auto x = static_cast<uint64_t>(place);
  do x = feistel(x, half_bits_, key);
  while (x >= static_cast<uint64_t>(sequences_));
  return static_cast<int64_t>(x);
}

int64_t steps_per_epoch(int64_t sequences, int64_t global_batch_size) {
  HR_CHECK(sequences >= 1 && global_batch_size >= 1, "{} sequences in batches of {}", sequences, global_batch_size);
  return sequences / global_batch_size + (sequences % global_batch_size != 0);
}

SampleRange samples_from(int64_t first, int64_t sequences, int64_t global_batch_size) {
  HR_CHECK(first >= 0 && sequences >= 1 && global_batch_size >= 1, "batch of {} at {} of {}", global_batch_size, first,
           sequences);
  const int64_t left = sequences - first % sequences;
  return {first, std::min(left, global_batch_size), first / sequences};
}

SampleRange samples_of_step(int64_t step, int64_t sequences, int64_t global_batch_size) {
  HR_CHECK(step >= 0, "step {}", step);
  const int64_t steps = steps_per_epoch(sequences, global_batch_size);
  const int64_t epoch = step / steps;
  return samples_from(epoch * sequences + step % steps * global_batch_size, sequences, global_batch_size);
}

}  // namespace headroom
