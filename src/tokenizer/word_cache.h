// Remembers the ids of short words.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headroom {

// A direct-mapped table of fixed size: a word replaces the one in its slot. An entry is returned only for the word that
// it was stored for, so results never depend on the content.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 22;
  static constexpr size_t kMaxIds = 6;
  struct Entry {
    uint8_t id_count = 0;  // 0: free
    uint8_t bytes = 0;
    std::array<char, kMaxBytes> text;
    std::array<uint32_t, kMaxIds> ids;
    double score;  // of the word, if the model gives scores
  };

  WordCache() : entries_(kEntries) {}

  // The entry of a word, or null.
  const Entry* find(std::string_view word) const;
  // Stores a word, if it is short enough and has few ids.
  void put(std::string_view word, std::span<const uint32_t> ids, double score);

  static constexpr int64_t memory_bytes() { return static_cast<int64_t>(kEntries * sizeof(Entry)); }

 private:
  static constexpr unsigned kIndexBits = 13;
  static constexpr size_t kEntries = size_t{1} << kIndexBits;
  static size_t place_of(std::string_view word);

  std::vector<Entry> entries_;
};

}  // namespace headroom
