// What encoding needs besides a tokenizer's tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/word_cache.h"

namespace headroom {

// Buffers, and a cache of words. For one tokenizer and one thread at a time. The results never depend on what it was
// used for before.
class TokenizerWorkspace {
 public:
  // The most heap bytes that it holds while words of at most `symbols` symbols (no word has more than bytes) are
  // encoded.
  static int64_t memory_bound(int64_t symbols);
  // The most heap bytes that it keeps between words.
  static int64_t kept_bytes();
  // Gives back the room that an exceptionally long word took.
  void trim();

  // A symbol of a word that is being merged.
  struct Symbol {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
  };
  // The best segmentation of a word's beginning.
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
  std::vector<uint64_t> queue_;  // heap of rank << 32 | place
  std::vector<Best> best_;       // by offset
  std::string spelled_;
};

}  // namespace headroom
