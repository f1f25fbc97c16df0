// Which sequences may take blocks so that all can finish.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/block_store.h"

namespace headroom {

// Sequences are ordered by age, that is by admission. The rule: the available blocks and those that the older ones
// return when they end cover all that each may still need. The slack of a sequence is the excess; the rule holds if no
// slack is below 0. Then the oldest never waits for a block, and when it has ended the next is the oldest, under the
// same rule: all finish, one after the other if necessary.
//
// When a sequence takes a block, the slack of older ones falls by one, and its own and that of younger ones does not
// change (available blocks fall by one; so does its need, and what it returns rises). When one is parked, ends or
// returns blocks, no slack falls. A block of several owners counts for the youngest, which is assumed to end last. Used
// by one thread; no heap call after construction.
class EndOrder {
 public:
  EndOrder(int64_t blocks, int64_t most_running);

  // Computes the slacks if `available` blocks are neither owned nor promised.
  void look(std::span<const SequenceBlocks* const> by_age, int64_t available);
  bool safe() const { return spare(slack_.size()) >= 0; }
  // Blocks that the sequence after the first `older` may take: the smallest slack of these; kAll if there are none.
  int64_t spare(size_t older) const;
  static constexpr int64_t kAll = INT64_MAX / 2;
  int64_t slack(size_t of) const { return slack_[of]; }
  // Blocks that become available when it ends.
  int64_t gives_back(size_t of) const { return gives_back_[of]; }

  static int64_t memory_bytes(int64_t blocks, int64_t most_running);

 private:
  std::vector<int64_t> slack_, gives_back_;  // by age
  std::vector<uint32_t> seen_;               // by block: the pass in which it was counted
  uint32_t look_ = 0;
};

}  // namespace headroom
