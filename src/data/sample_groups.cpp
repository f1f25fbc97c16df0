#include "data/sample_groups.h"

#include <algorithm>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {

SampleGroups::SampleGroups(const TokenCache& cache, SampleOrder order, int64_t batch)
    : cache_(cache), order_(order), batch_(batch) {
  HR_CHECK(batch >= 1 && order.sequences() == cache.sequences(), "groups of batches of {}", batch);
  rows_.reserve(static_cast<size_t>(std::min(kBatches * batch, cache.sequences())));
}

int64_t SampleGroups::memory_bytes(int64_t batch) { return kBatches * batch * static_cast<int64_t>(sizeof(Row)); }

void SampleGroups::load(int64_t epoch, int64_t window) {
  const int64_t first = epoch * order_.sequences() + window;
  if (loaded_ == first) return;
  const int64_t count = std::min(kBatches * batch_, order_.sequences() - window);
  rows_.clear();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sequence = order_.at(first + i);
    rows_.push_back({sequence, cache_.info(sequence).length, i});
  }
  std::sort(rows_.begin(), rows_.end(),
            [](const Row& a, const Row& b) { return a.length != b.length ? a.length > b.length : a.rank < b.rank; });
  loaded_ = first;
}

int64_t SampleGroups::at(int64_t sample) {
  const int64_t sequences = order_.sequences(), epoch = sample / sequences, within = sample % sequences;
  const int64_t window = within / (kBatches * batch_) * kBatches * batch_;
  load(epoch, window);
  const int64_t batch = (within - window) / batch_, whole = static_cast<int64_t>(rows_.size()) / batch_;
  int64_t visited = batch;
  if (batch < whole) {
    const uint64_t seed = mix64(order_.seed() ^ mix64(static_cast<uint64_t>(loaded_) + 1));
    visited = SampleOrder(whole, seed, order_.shuffles()).at(batch);
  }
  return rows_[static_cast<size_t>(visited * batch_ + (within - window) % batch_)].sequence;
}

}  // namespace headroom
