// Unigram: segments a word into the pieces with the highest sum of scores.
#pragma once

#include <array>
#include <string_view>

#include "tokenizer/piece_trie.h"
#include "tokenizer/token_joints.h"
#include "tokenizer/token_model.h"

namespace headroom {

// Finds the best segmentation as HF tokenizers does (Viterbi over prefixes of the word; sums in double precision from
// its beginning; of two equal sums the one whose last piece begins earlier stays). A character that is not a piece
// itself may be unknown, with the lowest score minus 10; neighbouring unknown ones become one token, or the tokens of
// their bytes.
class Unigram final : public TokenModel {
 public:
  // `file` must outlive the object. Throws Error(format) naming the place.
  Unigram(const Component& model, const TokenizerJson& file);

  void encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
              std::vector<int32_t>& ids) const override;
  bool allows_cut(const Boundary& boundary) const override;
  int64_t memory_bytes() const override {
    return static_cast<int64_t>(sizeof(Unigram)) + trie_.memory_bytes() + joints_.memory_bytes();
  }

 private:
  static constexpr uint32_t kNone = PieceTrie::kNone;

  void find_best(std::string_view word, double score, std::vector<TokenizerWorkspace::Best>& best) const;
  void offer_pieces(std::string_view word, size_t begin, std::vector<TokenizerWorkspace::Best>& best) const;
  void append_unknown(std::string_view run, std::vector<int32_t>& ids) const;
  bool is_always_known(char32_t code) const;

  const TokenVocabulary& vocabulary_;
  const std::vector<double>& scores_;
  PieceTrie trie_;
  TokenJoints joints_;
  uint32_t unknown_id_ = kNone;
  double unknown_score_ = 0;
  bool byte_fallback_ = false;
  std::array<uint32_t, 256> fallback_;  // id of <0xNN>
};

}  // namespace headroom
