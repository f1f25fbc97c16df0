// Byte-pair encoding of single words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizer_json.h"
#include "tokenizer/boundary.h"
#include "tokenizer/bpe_joints.h"
#include "tokenizer/component.h"

namespace headroom {

// What encoding needs besides the tables: buffers, and a cache of words. For one thread at a time. The results never
// depend on what it was used for before.
class BpeWorkspace {
 public:
  BpeWorkspace();

  // The most heap bytes that it holds while words of at most `symbols` symbols (no word has more than bytes) are
  // encoded.
  static int64_t memory_bound(int64_t symbols);
  // The most heap bytes that it keeps between words.
  static int64_t kept_bytes();
  // Gives back the room that an exceptionally long word took.
  void trim();

 private:
  friend class Bpe;
  struct Symbol {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
  };
  // A short word and its ids. Direct-mapped: a word replaces the one that had its place.
  struct Cached {
    static constexpr size_t kMaxBytes = 23;
    static constexpr size_t kMaxIds = 6;
    uint8_t id_count = 0;  // 0: free
    uint8_t bytes = 0;
    std::array<char, kMaxBytes - 1> text;
    std::array<uint32_t, kMaxIds> ids;
  };
  static constexpr size_t kCachedWords = 8192;

  std::vector<Cached> cache_;
  std::vector<uint32_t> ids_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> queue_;  // heap of rank << 32 | place
  std::string spelled_;
};

// The model of a tokenizer.json. Immutable; may be used from several threads, each with its own workspace.
class Bpe {
 public:
  // `bytes`: words are bytes, which the vocabulary spells by their symbols. `file` must outlive the object.
  // Throws Error(format) naming the place.
  Bpe(const Component& model, const TokenizerJson& file, bool bytes);

  // Whether the options of a model allow words given as bytes.
  static bool takes_bytes(const Component& model);

  // Appends the ids of a word. Takes time n log n in its length.
  void encode(std::string_view word, BpeWorkspace& workspace, std::vector<int32_t>& ids) const;

  // Whether a word may be cut at the boundary (given in the characters that encode() sees; bytes as their symbols).
  bool allows_cut(const Boundary& boundary) const;

  // Heap bytes held.
  int64_t memory_bytes() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Unknown;

  void encode_part(std::string_view part, BpeWorkspace& workspace, std::vector<int32_t>& ids) const;
  bool from_whole_word(std::string_view word, BpeWorkspace& workspace, std::vector<int32_t>& ids) const;
  void to_symbols(std::string_view part, std::vector<uint32_t>& ids) const;
  void add_unknown(std::string_view character, Unknown& unknown, std::vector<uint32_t>& ids) const;
  void merge_few(std::vector<uint32_t>& ids) const;
  void merge_many(BpeWorkspace& workspace) const;
  bool separates(char32_t left, char32_t right) const;
  size_t part_end(std::string_view word, size_t begin) const;
  void read_fallback();
  void find_joints();

  const TokenVocabulary& vocabulary_;
  const TokenMerges& merges_;
  bool bytes_;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool all_fallback_ = false;  // there is a token for every byte
  uint32_t unknown_id_ = kNone;
  std::array<uint32_t, 256> first_ids_;  // id of a byte, or of an ASCII character
  std::array<uint32_t, 256> fallback_;   // id of <0xNN>
  BpeJoints joints_;
};

}  // namespace headroom
