// What encoding needs in addition to a tokenizer's tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/word_cache.h"

namespace headroom {

// Buffers and a cache of words, for one tokenizer and one thread at a time. Results never depend on earlier uses.
class TokenizerWorkspace {
 public:
  // The most heap bytes that it holds while it encodes words of at most `symbols` symbols (a word has at most one per
  // byte).
  static int64_t memory_bound(int64_t symbols);
  // The most heap bytes that it keeps between words.
  static int64_t kept_bytes();
  // Frees what an exceptionally long word needed.
  void trim();

  // A symbol of a word that is being merged.
  struct Symbol {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
  };
  // The best segmentation of a prefix of the word.
  struct Best {
    double score;
    uint32_t begin;  // of its last piece
    uint32_t id;     // of its last piece
  };

 private:
  friend class Bpe;
  friend class WordPiece;
  friend class Unigram;

  WordCache cache_;
  std::vector<uint32_t> ids_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> queue_;  // heap of rank << 32 | position
  std::vector<Best> best_;       // by the prefix's end
  std::string spelled_;
};

}  // namespace headroom
