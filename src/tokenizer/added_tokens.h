// Tokens that are found in the text itself, before the model sees it: special tokens and other additions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizer_vocabulary.h"
#include "tokenizer/boundary.h"
#include "tokenizer/component.h"
#include "tokenizer/normalizer.h"

namespace headroom {

// One entry of "added_tokens".
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;   // found in the normalized text, not in the raw one
  std::string spelling;      // what the decoder sees: the content, normalized if `normalized`
  bool single_word = false;  // only between characters that are not part of a word
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // and after it
};

// Finds added tokens of one kind in a text: the leftmost first, of those that begin at the same byte the longest.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // Patterns: the contents, raw or normalized.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, std::vector<std::string> patterns);

  // A piece of the text: an added token with its id, or the text between two (id -1).
  struct Piece {
    size_t begin;
    size_t end;
    int32_t id;
  };
  bool empty() const { return entries_.empty(); }
  // Calls `take(Piece)` for all pieces of `text`, in order.
  template <typename Take>
  void split(std::string_view text, const Take& take) const {
    size_t done = 0;
    for (size_t at = 0; const Entry* entry = find(text, at);) {
      Piece piece{at, at + entry->pattern.size(), entry->id};
      at = piece.end;
      if (!widen(*entry, text, done, piece)) continue;
      if (done < piece.begin) take(Piece{done, piece.begin, -1});
      take(piece);
      done = piece.end;
    }
    if (done < text.size()) take(Piece{done, text.size(), -1});
  }

  // Whether the pieces on both sides stay the same if the text is cut there.
  bool allows_cut(const Boundary& boundary) const;
  int64_t memory_bytes() const;

 private:
  struct Entry {
    std::string pattern;
    int32_t id;
    bool single_word;
    bool lstrip;
    bool rstrip;
  };
  // The next match at or after `at`; sets `at` to its beginning.
  const Entry* find(std::string_view text, size_t& at) const;
  const Entry* longest_at(std::string_view text, size_t at) const;
  // Applies single_word, lstrip and rstrip; false if single_word rules the match out.
  static bool widen(const Entry& entry, std::string_view text, size_t done, Piece& piece);
  void note_edges(const Entry& entry);

  std::vector<Entry> entries_;  // sorted by pattern
  // For allows_cut(): neighbours within a pattern (left << 32 | right), and the edges of patterns that look around.
  std::vector<uint64_t> neighbours_;
  std::vector<char32_t> lstrip_begins_, rstrip_ends_, word_begins_, word_ends_;
  std::array<bool, 256> begins_{};
};

// All added tokens of a tokenizer.
class AddedTokens {
 public:
  AddedTokens() = default;
  // Reads the list "added_tokens". As in HF tokenizers, a token of the vocabulary keeps its id there; others keep the
  // given id. Throws Error(format) naming the place.
  static AddedTokens read(const Component& list, const TokenVocabulary& vocabulary, const Normalizer& normalizer);

  const AddedTokenFinder& raw() const { return raw_; }
  const AddedTokenFinder& normalized() const { return normalized_; }

  // The added token of an id, or null.
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  int64_t memory_bytes() const;

 private:
  void index(const Component& list);

  std::vector<AddedToken> tokens_;  // sorted by id
  std::vector<uint32_t> by_content_;
  AddedTokenFinder raw_;
  AddedTokenFinder normalized_;
};

}  // namespace headroom
