#include "tokenizer/word_cache.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace headroom {

size_t WordCache::place_of(std::string_view word) {
  const uint64_t hash = std::hash<std::string_view>()(word) * 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(hash >> (64 - kIndexBits));
}

const WordCache::Entry* WordCache::find(std::string_view word) const {
  if (word.empty() || word.size() > kMaxBytes) return nullptr;
  const Entry& entry = entries_[place_of(word)];
  const bool same =
      entry.id_count > 0 && entry.bytes == word.size() && std::memcmp(entry.text.data(), word.data(), word.size()) == 0;
  return same ? &entry : nullptr;
}

void WordCache::put(std::string_view word, std::span<const uint32_t> ids, double score) {
  if (word.empty() || word.size() > kMaxBytes || ids.empty() || ids.size() > kMaxIds) return;
  Entry& entry = entries_[place_of(word)];
  entry.id_count = static_cast<uint8_t>(ids.size());
  entry.bytes = static_cast<uint8_t>(word.size());
  std::memcpy(entry.text.data(), word.data(), word.size());
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
  entry.score = score;
}

}  // namespace headroom
