// Byte-pair encoding of single words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizer_json.h"
#include "tokenizer/token_joints.h"
#include "tokenizer/token_model.h"

namespace headroom {

// Merges neighbouring symbols of a word, lowest rank first.
class Bpe final : public TokenModel {
 public:
  // `bytes`: words are bytes, which the vocabulary spells with byte symbols. `file` must outlive the object. Throws
  // Error(format) naming the place.
  Bpe(const Component& model, const TokenizerJson& file, bool bytes);

  // Whether the options of a BPE model allow words as bytes.
  static bool takes_bytes(const Component& model);

  // Appends the ids of a word. O(n log n) in its length.
  void encode(TokenModelWord word, double& score, TokenizerWorkspace& workspace,
              std::vector<int32_t>& ids) const override;
  bool allows_cut(const Boundary& boundary) const override;
  int64_t memory_bytes() const override { return static_cast<int64_t>(sizeof(Bpe)) + joints_.memory_bytes(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Unknown;

  void encode_part(std::string_view part, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const;
  bool from_whole_word(std::string_view word, TokenizerWorkspace& workspace, std::vector<int32_t>& ids) const;
  void to_symbols(std::string_view part, std::vector<uint32_t>& ids) const;
  void add_unknown(std::string_view character, Unknown& unknown, std::vector<uint32_t>& ids) const;
  void merge_few(std::vector<uint32_t>& ids) const;
  void merge_many(TokenizerWorkspace& workspace) const;
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
  bool all_fallback_ = false;  // every byte has a token
  uint32_t unknown_id_ = kNone;
  std::array<uint32_t, 256> first_ids_;  // id of a byte, or of an ASCII character
  std::array<uint32_t, 256> fallback_;   // id of <0xNN>
  TokenJoints joints_;
};

}  // namespace headroom
