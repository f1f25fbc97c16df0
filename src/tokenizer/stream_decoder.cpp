#include "tokenizer/stream_decoder.h"

#include "tokenizer/decoder.h"
#include "tokenizer/pipeline.h"

namespace headroom {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : pipeline_(tokenizer.shared_pipeline()),
      chain_(std::make_unique<DecoderChain>(pipeline_->decoder())),
      skip_special_(skip_special) {}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(int32_t id) {
  std::string text;
  if (const auto token = pipeline_->token(id, skip_special_)) chain_->take(*token, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  chain_->finish(text);
  return text;
}

}  // namespace headroom
