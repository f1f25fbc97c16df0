// The tokenizer in the metadata of a GGUF (tokenizer.ggml.*), as the content of the same model's tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/gguf_header.h"
#include "formats/tokenizer_json.h"

namespace headroom {

// Types of tokens, by their numbers in tokenizer.ggml.token_type.
enum GgufTokenType : int32_t {
  kTokenUndefined,
  kTokenNormal,
  kTokenUnknown,
  kTokenControl,
  kTokenUserDefined,
  kTokenUnused,
  kTokenByte
};

struct GgufTokenizer {
  TokenizerJson content;
  std::optional<int32_t> bos_id, eos_id;
};

// Whether a file has a tokenizer, of any kind.
bool has_gguf_tokenizer(const GgufHeader& header);

// Whether it is of a kind, and splits texts into words in a way, that read_gguf_tokenizer() reads.
bool reads_gguf_tokenizer(const GgufHeader& header);

// Reads byte-level BPE ("gpt2") with the splitting into words that tokenizer.ggml.pre names, and BPE with byte fallback
// ("llama"), whose pairs are merged by the score of the token that they make. Throws Error(format) naming file and key
// for other kinds and splittings, arrays that are missing, too large or of different lengths, tokens that are not
// UTF-8, and ids without a token.
GgufTokenizer read_gguf_tokenizer(const ByteSource& source, const GgufHeader& header);

// The size of a tokenizer.json that takes at least as much memory, for Tokenizer::memory_bound(). Throws Error(format)
// for arrays of another type.
int64_t gguf_tokenizer_bytes(const ByteSource& source, const GgufHeader& header);

}  // namespace headroom
