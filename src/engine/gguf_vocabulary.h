// A tokenizer.json as the metadata of a GGUF (tokenizer.ggml.*).
#pragma once

#include <filesystem>
#include <string>

#include "formats/gguf_writer.h"

namespace headroom {

// Writes tokens, types, merges or scores, and special tokens of the tokenizer in `folder`: byte-level BPE as "gpt2"
// with llama.cpp's name for its splitting of words, BPE with byte fallback as "llama". `vocab`: rows of the embedding;
// ids without a token become unused ones. Without a tokenizer, or with one that llama.cpp cannot run, the file says
// that it has no vocabulary; returns the reason, else "". Throws Error as Tokenizer::load.
std::string put_vocabulary(GgufWriter& writer, const std::filesystem::path& folder, int64_t vocab);

// A bound on its heap, with the tokenizer of a place (tokenizer_place.h).
int64_t vocabulary_bytes(const std::filesystem::path& place);

}  // namespace headroom
