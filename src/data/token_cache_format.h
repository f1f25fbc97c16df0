// The layout of a token cache file (docs/token_cache_format.md): header, sequences, index. Little-endian, as the
// machine is.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/length_histogram.h"

namespace headroom {

static_assert(std::endian::native == std::endian::little, "the token cache is stored as it lies in memory");

inline constexpr uint64_t kTokenCacheMagic = 0x314e454b4f545248u;  // "HRTOKEN1"
inline constexpr uint32_t kTokenCacheVersion = 4;

struct TokenCacheHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t id_bytes;  // 2 or 4
  uint64_t key;
  int64_t max_seq_length;
  int64_t vocab_size;
  int64_t index_offset;
  int64_t file_bytes;
  int64_t sequences, tokens, targets, rows, empty_rows, cut_rows, lost_tokens, longest;
  uint64_t index_checksum;
  uint64_t labels;    // a LabelKind
  uint64_t checksum;  // of all before
};
static_assert(sizeof(TokenCacheHeader) == 144);

// Comes just before the index.
struct TokenCacheLengths {
  std::array<LengthHistogram::Bin, LengthHistogram::kBins> bins;
  uint64_t checksum;  // of all before
};
static_assert(sizeof(TokenCacheLengths) == 552);

// Labels of a sequence: `ignored` positions of -100 and then the ids themselves, or as many explicit labels as ids, or
// one class.
inline constexpr uint32_t kExplicitLabels = 0xffffffffu;
inline constexpr uint32_t kClassLabel = 0xfffffffeu;
// A class, and then the position at which the second of two texts begins.
inline constexpr uint32_t kClassOfPair = 0xfffffffdu;

struct TokenCacheEntry {
  int64_t offset;  // of the sequence's ids from the file's beginning, a multiple of 4
  uint32_t length;
  uint32_t targets;
  uint32_t ignored;   // or kExplicitLabels, kClassLabel, kClassOfPair
  uint32_t checksum;  // of the ids as stored, then of the explicit labels or the class
};
static_assert(sizeof(TokenCacheEntry) == 24);

// FNV-1a of 64 bits (Fowler, Noll, Vo), continued from `state`.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) state_ = (state_ ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  }
  template <typename T>
  void add_value(const T& value) {
    add(std::as_bytes(std::span(&value, 1)));
  }
  uint64_t value() const { return state_; }
  uint32_t folded() const { return static_cast<uint32_t>(state_ ^ (state_ >> 32)); }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

inline uint64_t checksum_of(const TokenCacheLengths& lengths) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(lengths.bins)));
  return checksum.value();
}

// Bytes of `length` stored ids, with padding to a multiple of 4.
constexpr int64_t stored_ids_bytes(int64_t length, int64_t id_bytes) { return (length * id_bytes + 3) / 4 * 4; }

}  // namespace headroom
