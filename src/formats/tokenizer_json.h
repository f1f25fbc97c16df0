// Reads a tokenizer.json of HF tokenizers without a DOM of its big parts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/tokenizer_merges.h"
#include "formats/tokenizer_vocabulary.h"

namespace headroom {

// What splits words into tokens.
enum class TokenModelKind { bpe, word_piece, unigram };

// The content of a tokenizer.json.
struct TokenizerJson {
  std::string source;  // names the file in errors
  Json root;           // all of it but model.vocab and model.merges
  TokenModelKind kind = TokenModelKind::bpe;
  TokenVocabulary vocabulary;  // model.vocab
  TokenMerges merges;          // model.merges of BPE
  std::vector<double> scores;  // of the tokens of Unigram, by id
};

// Reads the file with a SAX parser: at its peak little more than the result is held. Throws Error(usage) when the file
// cannot be read, Error(format) naming file and place when it is malformed or when its model is of a type that is not
// supported.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path);

// The same from a text; `source` names it in errors.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source);

}  // namespace headroom
