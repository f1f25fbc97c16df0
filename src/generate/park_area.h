// The slots that hold blocks of parked sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/block_pool.h"

namespace headroom {

// A slot holds the copy of one block. Sequences that share a full block share its slot: it is copied once. No heap call
// after construction. Used by one thread.
class ParkArea {
 public:
  struct Hold {
    int32_t slot = 0;
    bool fresh = false;  // the block must be copied there
  };

  // For a pool of so many blocks.
  ParkArea(int64_t slots, int64_t blocks);

  int64_t size() const { return slots_.size(); }
  int64_t used() const { return slots_.size() - slots_.free(); }
  // Whether there are slots for these blocks, of which the first `full` are full.
  bool fits(std::span<const int32_t> table, int64_t full) const;
  // A slot for a block, with one more owner; there must be one. `full`: the block is not written until forget().
  Hold hold(int32_t block, bool full);
  void release(int32_t slot);
  // A slot's bytes are in a full block again; other sequences that park this block share the slot while it has owners.
  void returned(int32_t slot, int32_t block);
  // The block will be written: it no longer equals its slot.
  void forget(int32_t block);

  static int64_t memory_bytes(int64_t slots, int64_t blocks);
  // Throws InternalError unless each slot is owned as often as these sequences hold it.
  void check(std::span<const std::vector<int32_t>* const> all) const;

 private:
  static constexpr int32_t kNone = -1;
  void untie(int32_t slot);

  BlockPool slots_;
  std::vector<int32_t> slot_of_, block_of_;  // of full blocks with a copy in a slot, and back
};

}  // namespace headroom
