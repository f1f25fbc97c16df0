#include "generate/end_order.h"

#include <algorithm>

namespace headroom {

EndOrder::EndOrder(int64_t blocks, int64_t most_running) : seen_(static_cast<size_t>(blocks)) {
  slack_.reserve(static_cast<size_t>(most_running));
  gives_back_.reserve(static_cast<size_t>(most_running));
}

void EndOrder::look(std::span<const SequenceBlocks* const> by_age, int64_t available) {
  if (++look_ == 0) std::fill(seen_.begin(), seen_.end(), 0), look_ = 1;
  gives_back_.assign(by_age.size(), 0);
  slack_.clear();
  for (size_t i = by_age.size(); i > 0; --i) {  // a block counts for its youngest owner
    const SequenceBlocks& blocks = *by_age[i - 1];
    gives_back_[i - 1] = blocks.promised;
    for (const int32_t block : blocks.table) {
      uint32_t& seen = seen_[static_cast<size_t>(block)];
      if (seen != look_) ++gives_back_[i - 1];
      seen = look_;
    }
  }
  int64_t at_hand = available;
  for (size_t i = 0; i < by_age.size(); ++i) {
    slack_.push_back(at_hand - by_age[i]->unpromised);
    at_hand += gives_back_[i];
  }
}

int64_t EndOrder::spare(size_t older) const {
  int64_t least = kAll;
  for (size_t i = 0; i < older; ++i) least = std::min(least, slack_[i]);
  return least;
}

int64_t EndOrder::memory_bytes(int64_t blocks, int64_t most_running) {
  return blocks * static_cast<int64_t>(sizeof(uint32_t)) + 2 * most_running * static_cast<int64_t>(sizeof(int64_t));
}

}  // namespace headroom
