// Decoding while ids arrive one by one (streamed generation).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tokenizer/tokenizer.h"

namespace headroom {

class DecoderChain;

// The concatenated results of push() and finish() are Tokenizer::decode() of all ids. Incomplete UTF-8 is held back,
// and so is a run of byte-fallback tokens until its end (an invalid byte changes the whole run).
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  // The text that this id makes certain, perhaps empty. Always whole UTF-8 characters.
  std::string push(int32_t id);

  // The text still held back. The decoder is then ready for the next sequence.
  std::string finish();

 private:
  std::shared_ptr<const TokenizerPipeline> pipeline_;
  std::unique_ptr<DecoderChain> chain_;
  bool skip_special_;
};

}  // namespace headroom
