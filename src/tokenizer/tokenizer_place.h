// Where the tokenizer of a model is: in a folder with tokenizer.json, or in the metadata of a GGUF. The other members
// of a place's tokenizer: its size, its chat template, the names of its special tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "formats/json.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// The place of a model's tokenizer, for Tokenizer::load(): `model`, or for a GGUF (the file or its folder) the folder
// if it holds a tokenizer.json, else the file if it has a tokenizer. Throws as gguf_of_model() and GgufFile::open().
std::filesystem::path tokenizer_place(const std::filesystem::path& model);

// Whether a place is a GGUF. The functions below for GGUFs require it.
bool is_gguf_tokenizer(const std::filesystem::path& place);

// Whether a place is a GGUF with a tokenizer of a kind that is not read: Tokenizer::load() says why.
bool is_unread_tokenizer(const std::filesystem::path& place);

// The size of tokenizer.json, or of one that takes as much memory as the tokenizer of a GGUF; 0 if there is none.
int64_t tokenizer_file_bytes(const std::filesystem::path& place);

// A bound on the heap bytes of a GGUF's header, which is held while the tokenizer is read; 0 for a folder.
int64_t tokenizer_header_bytes(const std::filesystem::path& place);

// The chat template of a GGUF (tokenizer.chat_template); empty if it has none.
std::string gguf_chat_template(const std::filesystem::path& place);

// What tokenizer_config.json would say about a GGUF's special tokens besides BOS and EOS: unk_token and pad_token.
Json gguf_token_names(const std::filesystem::path& place, const Tokenizer& tokenizer);

}  // namespace headroom
