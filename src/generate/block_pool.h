// The blocks of a KV pool, each with a count of its owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom {

// No heap call after construction. Used by one thread.
class BlockPool {
 public:
  explicit BlockPool(int64_t blocks);

  int64_t size() const { return static_cast<int64_t>(owners_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int32_t owners(int32_t block) const { return owners_[static_cast<size_t>(block)]; }

  // A free block, the one that was freed last, which then has one owner. There must be one.
  int32_t take();
  // Adds or removes an owner of a block that has owners; returns how many there are then. A block without owners is
  // free.
  int32_t share(int32_t block);
  int32_t release(int32_t block);

  static int64_t memory_bytes(int64_t blocks);
  // Throws InternalError unless the free blocks are those without owners, each once.
  void check() const;

 private:
  std::vector<int32_t> owners_;  // by block
  std::vector<int32_t> free_;    // a stack
};

}  // namespace headroom
