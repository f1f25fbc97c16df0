// Which tokens of a vocabulary begin a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/tokenizer_vocabulary.h"
#include "tokenizer/component.h"

namespace headroom {

// The tokens of a vocabulary as a tree of bytes. Immutable; may be read from several threads.
//
// Nodes are numbered level by level, so that the children of a node are neighbours: a node takes 9 bytes.
class PieceTrie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  // A token that comes twice has its highest id. Throws Error(format) naming `model` when a token is too long to look
  // for at every place of a text.
  PieceTrie(const TokenVocabulary& vocabulary, const Component& model);

  // The node that a byte leads to, kNone when no token goes on with it.
  uint32_t child(uint32_t node, char byte) const;
  // The id of the token that ends at a node, kNone when none does.
  uint32_t id(uint32_t node) const { return ids_[node]; }
  // The node that a text leads to.
  uint32_t descend(uint32_t node, std::string_view text) const;

  // Heap bytes held.
  int64_t memory_bytes() const;

 private:
  std::vector<uint32_t> children_;  // of a node: from its entry to that of the next one
  std::vector<char> labels_;        // the byte that leads to a node
  std::vector<uint32_t> ids_;
};

}  // namespace headroom
