// Reads a tokenizer.json of HF tokenizers without a DOM of its large parts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/tokenizer_merges.h"
#include "formats/tokenizer_vocabulary.h"

namespace headroom {

// The model that splits words into tokens.
enum class TokenModelKind { bpe, word_piece, unigram };

// The content of a tokenizer.json.
struct TokenizerJson {
  std::string source;  // for errors
  Json root;           // everything except model.vocab and model.merges
  TokenModelKind kind = TokenModelKind::bpe;
  TokenVocabulary vocabulary;  // model.vocab
  TokenMerges merges;          // model.merges, for BPE
  std::vector<double> scores;  // by id, for Unigram
};

// Reads the file with a SAX parser: at the peak it holds little more than the result. Throws Error(usage) if the file
// cannot be read, Error(format) naming file and place if it is malformed or the type of its model is not supported.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path);

// The same for a text; `source` names it in errors.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& source);

}  // namespace headroom
