// Reads a tokenizer.json of HF tokenizers without a DOM of its big parts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "formats/json.h"
#include "formats/tokenizer_merges.h"
#include "formats/tokenizer_vocabulary.h"

namespace headroom {

// A tokenizer.json whose model is BPE.
struct TokenizerJson {
  std::string source;          // names the file in errors
  Json root;                   // all of it but model.vocab and model.merges
  TokenVocabulary vocabulary;  // model.vocab
  TokenMerges merges;          // model.merges
};

// Reads the file with a SAX parser: at its peak little more than the result is held. Throws Error(usage) when the file
// cannot be read, Error(format) naming file and place when it is malformed or when its model is of another type than
// BPE.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path);

// The same from a text; `source` names it in errors.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source);

}  // namespace headroom
