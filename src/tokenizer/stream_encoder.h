// Encodes texts that are larger than memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace headroom {

class TokenizerWorkspace;
struct TextPlace;

// Yields the ids of Tokenizer::encode() of the whole text while the text arrives in chunks of any size. Cuts the text
// only between characters where the tokenizer provably cannot join or look across (checked against its own tables). If
// `max_piece_bytes` bytes have no such place the text is cut anyway, and forced_cuts() counts it.
class StreamEncoder {
 public:
  static constexpr int64_t kDefaultMaxPieceBytes = int64_t{1} << 17;

  StreamEncoder(const Tokenizer& tokenizer, bool add_special_tokens, int64_t max_piece_bytes = kDefaultMaxPieceBytes);
  ~StreamEncoder();
  StreamEncoder(StreamEncoder&&) noexcept;
  StreamEncoder& operator=(StreamEncoder&&) noexcept;

  // Takes the next bytes of the text (a character may be split between chunks) and appends the ids that are certain to
  // `ids`. Throws Error(format) with the byte offset in the whole text if it is not UTF-8.
  void feed(std::string_view chunk, std::vector<int32_t>& ids);

  // Ends the text: appends the remaining ids. The encoder is then ready for the next text.
  void finish(std::vector<int32_t>& ids);

  // How often the text was cut at a place that is not proven safe. Zero: the ids are exactly those of encode().
  int64_t forced_cuts() const { return forced_cuts_; }

  // A bound on the heap bytes that an encoder with this piece size holds, without the caller's `ids`.
  static int64_t memory_bound(const Tokenizer& tokenizer, int64_t max_piece_bytes = kDefaultMaxPieceBytes);

 private:
  void check_buffer(bool ends);
  void encode_what_is_certain(std::vector<int32_t>& ids);
  size_t last_cut() const;
  void encode_front(size_t bytes, std::vector<int32_t>& ids);

  std::shared_ptr<const TokenizerPipeline> pipeline_;
  std::unique_ptr<TokenizerWorkspace> workspace_;
  std::unique_ptr<TextPlace> place_;  // of the buffer
  bool add_special_tokens_;
  size_t max_piece_bytes_;
  std::string buffer_;
  size_t valid_ = 0;      // bytes of buffer_ that are whole UTF-8 characters
  size_t searched_ = 0;   // the buffer has no place to cut before this offset
  int64_t consumed_ = 0;  // bytes of the text that have left the buffer
  int64_t forced_cuts_ = 0;
  bool started_ = false;
};

}  // namespace headroom
