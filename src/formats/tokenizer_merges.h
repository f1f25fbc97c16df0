// The merges of a BPE tokenizer: pair of token ids -> (rank, id of the merged token).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom {

// Two neighbouring tokens that are merged; lower ranks first.
struct TokenMerge {
  uint32_t left;
  uint32_t right;
  uint32_t rank;
  uint32_t merged;
};

// A hash table of merges. Immutable; may be read from several threads.
class TokenMerges {
 public:
  TokenMerges() = default;
  // A pair that occurs twice keeps its last rank.
  explicit TokenMerges(const std::vector<TokenMerge>& merges);

  // The merge of a pair, or null.
  const TokenMerge* find(uint32_t left, uint32_t right) const {
    if (slots_.empty()) return nullptr;
    for (size_t slot = first_slot(left, right); slots_[slot].rank != kFree;
         slot = slot + 1 == slots_.size() ? 0 : slot + 1)
      if (slots_[slot].left == left && slots_[slot].right == right) return &slots_[slot];
    return nullptr;
  }
  size_t size() const { return size_; }
  // Heap bytes held.
  int64_t memory_bytes() const { return static_cast<int64_t>(slots_.capacity() * sizeof(TokenMerge)); }

  // All slots, including free ones (rank kFree), in an order that depends only on the merges.
  static constexpr uint32_t kFree = UINT32_MAX;
  const std::vector<TokenMerge>& slots() const { return slots_; }

 private:
  size_t first_slot(uint32_t left, uint32_t right) const {
    uint64_t key = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15U;
    key = (key ^ key >> 29) * 0xBF58476D1CE4E5B9U;
    return static_cast<size_t>(((key >> 32) * slots_.size()) >> 32);
  }

  std::vector<TokenMerge> slots_;
  size_t size_ = 0;
};

}  // namespace headroom
