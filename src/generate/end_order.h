// Which sequences may take blocks so that all can come to their end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/block_store.h"

namespace headroom {

// Sequences in the order of their age, which is that of their admission. The rule: each has at hand, in what is
// available and what the older ones give back when they end, as many blocks as it may still need. The slack of a
// sequence is by how many; the rule holds where no slack is below 0. Then the oldest never waits for a block, and when
// it has ended the next is the oldest, under the same rule: all come to their end, one after the other if need be.
//
// When a sequence takes a block, the slack of those that are older falls by one, its own and that of younger ones stays
// (what is available falls; its need falls, what it gives back rises). When one is parked, ends or gives back, no slack
// falls. A block of several owners is given back by the youngest of them, counted here as the last to end.
// Used by one thread; no heap call after construction.
class EndOrder {
 public:
  EndOrder(int64_t blocks, int64_t most_running);

  // Computes the slacks where `available` blocks are neither owned nor promised.
  void look(std::span<const SequenceBlocks* const> by_age, int64_t available);
  bool safe() const { return spare(slack_.size()) >= 0; }
  // Blocks that the sequence behind the first `older` may take: the least slack of these; kAll where there are none.
  int64_t spare(size_t older) const;
  static constexpr int64_t kAll = INT64_MAX / 2;
  int64_t slack(size_t of) const { return slack_[of]; }
  // Blocks that become available when it ends.
  int64_t gives_back(size_t of) const { return gives_back_[of]; }

  static int64_t memory_bytes(int64_t blocks, int64_t most_running);

 private:
  std::vector<int64_t> slack_, gives_back_;  // by age
  std::vector<uint32_t> seen_;               // by block: the look at which it was counted
  uint32_t look_ = 0;
};

}  // namespace headroom
