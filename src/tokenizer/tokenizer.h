// Text <-> token ids, exactly as a model's `tokenizer.json` specifies (BPE, WordPiece, Unigram).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

class TokenizerPipeline;

// An immutable tokenizer. Copies share their data; all members are const and thread-safe.
class Tokenizer {
 public:
  // Loads a tokenizer.json, given as that file or as its folder. `tokenizer_config.json` and `special_tokens_map.json`
  // next to it name BOS and EOS, if they exist. A .gguf is loaded with its own tokenizer (gguf_tokenizer.h). Throws
  // Error(usage) if there is no file, Error(format) naming file and place if it is malformed or uses a component that
  // is not supported.
  static Tokenizer load(const std::filesystem::path& folder_or_file);

  // The same from the text of a tokenizer.json; `source` names it in errors.
  static Tokenizer from_json(std::string_view text, const std::string& source);

  // The built-in tokenizer: ids 0-255 are bytes, 256 is BOS (`<s>`, added in front), 257 is EOS (`</s>`).
  static Tokenizer bytes();

  // The ids of a text. `add_special_tokens` adds what the post-processor adds (BOS, EOS); special tokens spelled out in
  // the text become their ids in either case. Throws Error(format) with the byte offset if the text is not UTF-8.
  std::vector<int32_t> encode(std::string_view utf8, bool add_special_tokens) const;

  // The text of ids; ids without a token are skipped. `skip_special` also skips special tokens.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  // Highest id + 1, including added tokens. A model's embedding may have more rows, never fewer.
  int64_t vocab_size() const;

  // From tokenizer_config.json, special_tokens_map.json, the post-processor, or a well-known name, in this order.
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

  // The id of a token given by its content, added tokens first.
  std::optional<int32_t> token_id(std::string_view content) const;

  // A token in the spelling of the vocabulary (bytes as their symbols); empty if there is none.
  std::string token(int32_t id) const;

  // Whether encode(text, true) starts with BOS, and whether it ends with EOS.
  bool adds_bos() const;
  bool adds_eos() const;

  // A bound on the heap bytes held between calls: tables, word cache and buffers; constant after loading. encode() of n
  // bytes needs StreamEncoder::memory_bound(tokenizer, n) and the ids in addition.
  int64_t memory_bytes() const;

  // A bound on the heap bytes that loading a tokenizer.json of `file_bytes` bytes holds at once, and that the tokenizer
  // holds afterwards.
  static constexpr int64_t memory_bound(int64_t file_bytes) { return 4 * file_bytes + (int64_t{2} << 20); }

  const TokenizerPipeline& pipeline() const { return *pipeline_; }
  std::shared_ptr<const TokenizerPipeline> shared_pipeline() const { return pipeline_; }

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline) : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const TokenizerPipeline> pipeline_;
};

// The tokenizer.json of Tokenizer::bytes(), as `headroom init` writes it.
std::string bytes_tokenizer_json();

}  // namespace headroom
