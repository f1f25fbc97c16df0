#include "generate/output_lengths.h"

#include <algorithm>

namespace headroom {

// Bucket i holds ratios above i / kBuckets, up to (i + 1) / kBuckets.
size_t OutputLengths::bucket(int64_t drawn, int64_t most) {
  const int64_t above = (drawn * static_cast<int64_t>(kBuckets) + most - 1) / most - 1;
  return static_cast<size_t>(std::clamp<int64_t>(above, 0, kBuckets - 1));
}

void OutputLengths::add(int64_t drawn, int64_t most) {
  ++counts_[bucket(drawn, most)];
  if (++total_ < kMost) return;
  total_ = 0;
  for (int64_t& count : counts_) total_ += count /= 2;
}

int64_t OutputLengths::expected(int64_t drawn, int64_t most) const {
  if (most <= 0 || drawn >= most) return most;
  const size_t first = bucket(drawn + 1, most);
  int64_t longer = kPrior;
  for (size_t i = first; i < kBuckets; ++i) longer += counts_[i];
  int64_t seen = 0;
  for (size_t i = first; i < kBuckets; ++i) {
    seen += counts_[i];
    if (static_cast<double>(seen) >= kQuantile * static_cast<double>(longer))
      return std::max(drawn + 1, static_cast<int64_t>(i + 1) * most / static_cast<int64_t>(kBuckets));
  }
  return most;
}

}  // namespace headroom
