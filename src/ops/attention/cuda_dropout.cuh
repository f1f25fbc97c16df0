// Which probabilities are dropped: score_dropout.h on the device.
#pragma once

#include "ops/attention/cuda_kernels.h"
#include "ops/cuda/random.cuh"

namespace headroom::cuda {

// The random bits of one head of one batch row. Without kDropped everything is kept and nothing is computed.
template <bool kDropped>
class HeadDropout {
 public:
  HR_DEVICE HeadDropout(const AttentionSizes& sizes, int row, int head) {
    if (!kDropped) return;
    key_ = step_key(sizes.dropout.hyper, sizes.dropout.tensor);
    first_ = sizes.dropout.first + (static_cast<int64_t>(row) * sizes.heads + head) * sizes.queries;
    below_ = sizes.dropout.below;
  }
  HR_DEVICE uint64_t row_key(int query) const {
    return kDropped ? mix64(key_ ^ static_cast<uint64_t>(first_ + query)) : 0;
  }
  HR_DEVICE bool dropped(uint64_t row_key, int key) const {
    if (!kDropped) return false;
    const uint32_t bits = counter_bits(row_key, static_cast<uint64_t>(key / 2));
    return (key % 2 == 0 ? bits & 0xffffu : bits >> 16) < below_;
  }
  // Zeroes the dropped ones among the values of `key`, which is even, and of the next key.
  HR_DEVICE void drop_pair(float& even, float& odd, uint64_t row_key, int key) const {
    if (!kDropped) return;
    const uint32_t bits = counter_bits(row_key, static_cast<uint64_t>(key / 2));
    if ((bits & 0xffffu) < below_) even = 0;
    if (bits >> 16 < below_) odd = 0;
  }

 private:
  uint64_t key_ = 0;
  int64_t first_ = 0;
  uint32_t below_ = 0;
};

// The key at which a loop over tiles from `key` on starts: the first one of its pair if pairs share random bits.
template <bool kDropped>
HR_DEVICE int first_key(int key) {
  return kDropped ? key & ~1 : key;
}

// The factor for kept probabilities.
template <bool kDropped>
HR_DEVICE float kept_scale(const AttentionSizes& sizes) {
  return kDropped ? sizes.dropout.scale : 1.0f;
}

}  // namespace headroom::cuda
