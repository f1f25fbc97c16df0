// The bytes of a vocabulary's tokens as a trie, with nodes in the order of a walk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/token_bytes.h"

namespace headroom {

class TokenTrie {
 public:
  // Longer tokens, and those without bytes, are in no grammar's text. Ids are below `vocab`.
  static constexpr size_t kLongestToken = 255;

  TokenTrie(const TokenBytes& tokens, int64_t vocab);

  // Node 0 is the empty text; the others are in preorder, the children of a node by their bytes.
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  uint8_t byte(uint32_t node) const { return bytes_[node]; }
  uint8_t depth(uint32_t node) const { return depths_[node]; }
  // The first node that is not below `node`.
  uint32_t skip(uint32_t node) const { return skips_[node]; }
  // The tokens whose bytes end at a node.
  std::span<const int32_t> ids(uint32_t node) const {
    return std::span<const int32_t>(ids_).subspan(first_ids_[node], first_ids_[node + 1] - first_ids_[node]);
  }

  int64_t vocab() const { return vocab_; }
  int64_t memory_bytes() const;
  // A bound on the heap for building a trie, including the trie, from a tokenizer.json of so many bytes: a byte of a
  // token is a byte of that file, and a node of ten bytes unless other tokens share it.
  static constexpr int64_t build_bound(int64_t tokenizer_file_bytes) {
    return 12 * tokenizer_file_bytes + (int64_t{1} << 20);
  }

 private:
  int64_t vocab_;
  std::vector<uint8_t> bytes_, depths_;
  std::vector<uint32_t> skips_, first_ids_;
  std::vector<int32_t> ids_;
};

}  // namespace headroom
