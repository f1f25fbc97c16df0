#include "tokenizer/workspace.h"

#include <algorithm>

namespace headroom {
namespace {

// Symbols that the buffers keep room for from word to word.
constexpr size_t kKeptSymbols = 1 << 12;

template <typename Buffer>
void trim_buffer(Buffer& buffer, size_t kept) {
  if (buffer.capacity() > kept) Buffer().swap(buffer);
}

}  // namespace

int64_t TokenizerWorkspace::memory_bound(int64_t symbols) {
  // BPE fills ids_, symbols_, queue_ and spelled_; Unigram ids_ and best_, which may grow from a shorter word's.
  const auto merging = static_cast<int64_t>(sizeof(uint32_t) + sizeof(Symbol) + 2 * sizeof(uint64_t) + 2);
  const auto scoring = static_cast<int64_t>(2 * sizeof(uint32_t) + 2 * sizeof(Best));
  return WordCache::memory_bytes() + 4096 + symbols * std::max(merging, scoring);
}

int64_t TokenizerWorkspace::kept_bytes() { return memory_bound(2 * static_cast<int64_t>(kKeptSymbols)); }

void TokenizerWorkspace::trim() {
  trim_buffer(ids_, kKeptSymbols);
  trim_buffer(symbols_, kKeptSymbols);
  trim_buffer(queue_, 2 * kKeptSymbols);
  trim_buffer(best_, kKeptSymbols);
  trim_buffer(spelled_, kKeptSymbols);
}

}  // namespace headroom
