// The tokens of a vocabulary that may come next.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

class TokenMask {
 public:
  explicit TokenMask(int64_t vocab = 0) : vocab_(vocab), words_(static_cast<size_t>((vocab + 63) / 64)) {}

  int64_t vocab() const { return vocab_; }
  void clear() { words_.assign(words_.size(), 0); }
  void allow(int32_t id) { words_[static_cast<size_t>(id) >> 6] |= uint64_t{1} << (id & 63); }
  void set(int32_t id, bool allowed) {
    const uint64_t bit = uint64_t{1} << (id & 63);
    uint64_t& word = words_[static_cast<size_t>(id) >> 6];
    word = allowed ? word | bit : word & ~bit;
  }
  void allow(std::span<const uint64_t> words) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= words[i];
  }
  bool allows(int32_t id) const { return (words_[static_cast<size_t>(id) >> 6] >> (id & 63) & 1) != 0; }
  int64_t count() const {
    int64_t bits = 0;
    for (const uint64_t word : words_) bits += std::popcount(word);
    return bits;
  }
  std::span<const uint64_t> words() const { return words_; }

 private:
  int64_t vocab_;
  std::vector<uint64_t> words_;
};

}  // namespace headroom
