// Remembers the ids of short words.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headroom {

// A table of fixed size, direct-mapped: a word replaces the one that had its place. What it gives is always what was
// put in for that very word, so results never depend on what it holds.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 22;
  static constexpr size_t kMaxIds = 6;
  struct Entry {
    uint8_t id_count = 0;  // 0: free
    uint8_t bytes = 0;
    std::array<char, kMaxBytes> text;
    std::array<uint32_t, kMaxIds> ids;
    double score;  // that the model gave the word, if it gives scores
  };

  WordCache() : entries_(kEntries) {}

  // The entry of a word, null when it is not held.
  const Entry* find(std::string_view word) const;
  // Remembers a word, if it is short enough and has few ids.
  void put(std::string_view word, std::span<const uint32_t> ids, double score);

  static constexpr int64_t memory_bytes() { return static_cast<int64_t>(kEntries * sizeof(Entry)); }

 private:
  static constexpr unsigned kIndexBits = 13;
  static constexpr size_t kEntries = size_t{1} << kIndexBits;
  static size_t place_of(std::string_view word);

  std::vector<Entry> entries_;
};

}  // namespace headroom
