// Finds blocks of the KV pool by their tokens and the tokens before them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// A tree of full blocks: an entry is a block, the block before it (its parent), and its tokens. It is found by a hash
// of these and confirmed by comparing them, so a collision never gives a wrong block. An entry's parent stays as long
// as the entry does: the chain up to the root spells the whole text before the block. Texts that may not share blocks
// (of different adapters) have different roots: a negative number instead of a parent.
//
// Unused entries are evicted in the order in which they became unused. A user of an entry also uses its parents, and
// releases it before them, so a parent is evicted after its children. No heap call after construction. Used by one
// thread.
class PrefixIndex {
 public:
  static constexpr int32_t kNone = -1;  // no block; as a parent: the start of a text

  // For a pool of `blocks`. `buckets`: of the hash table, 0 = default.
  PrefixIndex(int64_t blocks, int64_t block_tokens, int64_t buckets = 0);

  // The block that holds `tokens` after `parent`, or kNone.
  int32_t find(int32_t parent, std::span<const int32_t> tokens) const;
  // Enters a block, in use. find() must have given kNone.
  void insert(int32_t block, int32_t parent, std::span<const int32_t> tokens);
  bool contains(int32_t block) const { return entry(block).state != State::absent; }
  bool in_use(int32_t block) const { return entry(block).state == State::used; }
  // Marks the entry as used again, or as unused.
  void use(int32_t block);
  void keep(int32_t block);
  // Removes the entry that has been unused longest; there must be one. Returns its block.
  int32_t evict();

  int64_t size() const { return size_; }
  int64_t kept() const { return kept_; }  // unused entries
  static int64_t memory_bytes(int64_t blocks, int64_t block_tokens);
  // Throws InternalError unless the tree, the hash table and the list agree.
  void check() const;

 private:
  enum class State : uint8_t { absent, used, kept };
  struct Entry {
    int32_t parent = kNone, children = 0;
    int32_t next_in_bucket = kNone;
    int32_t before = kNone, after = kNone;  // in the list of unused entries
    State state = State::absent;
  };
  static int64_t buckets_for(int64_t blocks);
  Entry& entry(int32_t block) { return entries_[static_cast<size_t>(block)]; }
  const Entry& entry(int32_t block) const { return entries_[static_cast<size_t>(block)]; }
  std::span<int32_t> tokens_of(int32_t block);
  std::span<const int32_t> tokens_of(int32_t block) const;
  size_t bucket(int32_t parent, std::span<const int32_t> tokens) const;
  void unlink(Entry& of);
  void check_entry(int32_t block) const;

  int64_t block_tokens_;
  std::vector<Entry> entries_;    // by block
  std::vector<int32_t> tokens_;   // block_tokens of each block
  std::vector<int32_t> buckets_;  // the first block of each
  int32_t oldest_ = kNone, newest_ = kNone;
  int64_t size_ = 0, kept_ = 0;
};

}  // namespace headroom
