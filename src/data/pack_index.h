// Which sequences of a token cache share a packed sequence: a file next to the cache, read by pread like the cache
// (docs/token_cache_format.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "data/sample_order.h"
#include "data/token_cache.h"
#include "formats/file.h"

namespace headroom {

// One packed sequence.
struct PackInfo {
  int64_t first = 0;  // of its sequences, in the file's list
  int64_t sequences = 0;
  int64_t length = 0;   // tokens
  int64_t targets = 0;  // scored tokens
};

// A finished index. Const and thread-safe.
class PackIndex {
 public:
  // Packs the sequences of `cache` (with labels next_token) in the order of `order`'s first epoch, window after window
  // of kWindow sequences, best-fit-decreasing, into sequences of `length` tokens; or opens the file that an earlier
  // call with the same arguments wrote to `path`. Throws Error(run) on I/O errors.
  static PackIndex open_or_build(const TokenCache& cache, const SampleOrder& order, int64_t length,
                                 const std::filesystem::path& path);
  static constexpr int64_t kWindow = 1 << 16;

  // Of the arguments it was made from.
  uint64_t key() const { return key_; }
  int64_t packs() const { return packs_; }
  int64_t length() const { return length_; }

  // 0 <= pack < packs(). No heap allocation. Throws Error(format) when the entry is corrupt, Error(run) on an I/O
  // error.
  PackInfo info(int64_t pack) const;
  // The cache's sequences `from`, from + 1, ... of a pack, in order. No heap allocation. Errors as info().
  void sequences(const PackInfo& pack, int64_t from, std::span<int64_t> into) const;

  // A bound on the heap that building holds at once.
  static int64_t memory_bytes(int64_t length);

 private:
  static PackIndex open(const std::filesystem::path& path);
  static void build(const TokenCache& cache, const SampleOrder& order, int64_t length, uint64_t key,
                    const std::filesystem::path& path);

  File file_;
  uint64_t key_ = 0;
  int64_t length_ = 0;
  int64_t packs_ = 0;
  int64_t sequences_ = 0;
};

}  // namespace headroom
