// WordPiece: splits a word greedily into the longest tokens.
#pragma once

#include <string_view>

#include "tokenizer/piece_trie.h"
#include "tokenizer/token_model.h"

namespace headroom {

// A word becomes the longest token that begins it, then the longest that continues it (in the vocabulary those have a
// prefix, "##"), and so on. A word that cannot be spelled like this, or is too long, becomes the unknown token.
class WordPiece final : public TokenModel {
 public:
  // `file` must outlive the object. Throws Error(format) naming the place; the unknown token must be in the vocabulary.
  WordPiece(const Component& model, const TokenizerJson& file);

  void encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
              std::vector<int32_t>& ids) const override;
  bool allows_cut(const Boundary&) const override { return false; }  // any character may change the whole word
  int64_t memory_bytes() const override { return static_cast<int64_t>(sizeof(WordPiece)) + trie_.memory_bytes(); }

 private:
  void spell(std::string_view word, std::vector<uint32_t>& pieces) const;

  PieceTrie trie_;
  uint32_t continuing_;  // the node of the prefix
  uint32_t unknown_id_;
  size_t max_characters_;
};

}  // namespace headroom
