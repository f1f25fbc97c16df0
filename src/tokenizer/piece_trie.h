// Finds the tokens of a vocabulary that begin a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/tokenizer_vocabulary.h"
#include "tokenizer/component.h"

namespace headroom {

// The tokens of a vocabulary as a tree of bytes. Immutable and thread-safe.
//
// Nodes are numbered level by level, so the children of a node are adjacent; a node takes 9 bytes.
class PieceTrie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  // A token that occurs twice has its highest id. Throws Error(format) naming `model` if a token is too long to search
  // for at every position of a text.
  PieceTrie(const TokenVocabulary& vocabulary, const Component& model);

  // The node that a byte leads to, or kNone.
  uint32_t child(uint32_t node, char byte) const;
  // The id of the token that ends at a node, or kNone.
  uint32_t id(uint32_t node) const { return ids_[node]; }
  // The node that a text leads to, or kNone.
  uint32_t descend(uint32_t node, std::string_view text) const;

  // Heap bytes held.
  int64_t memory_bytes() const;

 private:
  std::vector<uint32_t> children_;  // begin of a node's children; they end where the next node's begin
  std::vector<char> labels_;        // the byte that leads to a node
  std::vector<uint32_t> ids_;
};

}  // namespace headroom
