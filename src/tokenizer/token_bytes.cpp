#include "tokenizer/token_bytes.h"

#include "base/error.h"
#include "tokenizer/decoder.h"
#include "tokenizer/pipeline.h"

namespace headroom {

TokenBytes::TokenBytes(const Tokenizer& tokenizer) : pipeline_(tokenizer.shared_pipeline()) {
  const std::optional<DecoderPlan::LeadingSpaces> leading = pipeline_->decoder().leading_spaces();
  if (!leading)
    throw Error(
        ErrorKind::usage,
        "the decoder of this model's tokenizer.json makes a token's text depend on those around it: grammars do "
        "not work with it",
        "use a model whose tokenizer is byte-level BPE or of SentencePiece's kind");
  leading_spaces_ = leading->count;
  only_of_first_token_ = leading->only_of_first_token;
}

std::string TokenBytes::of(int32_t id) const {
  const auto token = pipeline_->token(id, true);
  return token ? pipeline_->decoder().bytes_of(*token) : std::string();
}

int64_t TokenBytes::vocab_size() const { return pipeline_->vocab_size(); }

}  // namespace headroom
