// All parts of one tokenizer together.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tokenizer_json.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_model.h"

namespace headroom {

// Where a text is within the whole text that it is part of.
struct TextPlace {
  bool begins_text = true;      // at the beginning
  bool begins_piece = true;     // there, or after an added token of the raw text
  bool begins_word = true;      // there, or after an added token of the normalized text
  char32_t last_character = 0;  // of the part before
  double score = 0;             // of the last word of the part before, if the model gives scores
};

// What a Tokenizer shares with its streams. Immutable except for the workspace, which a mutex protects.
class TokenizerPipeline {
 public:
  // Takes the content of a tokenizer.json. Throws Error(format) naming the place.
  explicit TokenizerPipeline(TokenizerJson file);

  // Appends the ids of valid UTF-8, without special tokens around it. Returns the place of the text that follows.
  TextPlace encode(std::string_view text, TextPlace place, TokenizerWorkspace& workspace,
                   std::vector<int32_t>& ids) const;
  // The same with the pipeline's workspace, or with a new one if that is in use.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;

  // What cutting a text between these two characters does to its ids.
  Cut cut_between(char32_t left, char32_t right) const;
  // Whether that never changes them.
  bool allows_cut(char32_t left, char32_t right) const { return cut_between(left, right).kind != CutKind::changes_ids; }

  // A token as the decoder sees it; empty if the id has none, or if it is special and `skip_special` is set.
  std::optional<std::string_view> token(int32_t id, bool skip_special) const;
  std::optional<int32_t> id(std::string_view token) const;
  // The same, only among added special tokens.
  std::optional<int32_t> special_id(std::string_view token) const;

  const PostProcessor& post_processor() const { return post_processor_; }
  const DecoderPlan& decoder() const { return decoder_; }
  int64_t vocab_size() const;
  // A bound on the bytes of words, and so on the symbols, that `bytes` bytes of text become.
  int64_t word_bytes_bound(int64_t bytes) const;
  int64_t memory_bytes() const;

  std::optional<int32_t> bos_id, eos_id;

 private:
  void check_special_ids(const std::string& source) const;
  size_t continued_steps(TextPlace place, std::string_view text) const;
  Cut cut_at(Boundary boundary) const;

  TokenizerJson file_;
  Normalizer normalizer_;
  AddedTokens added_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<const TokenModel> model_;
  PostProcessor post_processor_;
  DecoderPlan decoder_;
  mutable std::mutex mutex_;
  mutable TokenizerWorkspace workspace_;
};

}  // namespace headroom
