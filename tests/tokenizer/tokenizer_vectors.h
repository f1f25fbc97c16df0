// Rows of text with the ids and the decoded text of HF tokenizers, and a function to check a tokenizer against them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/json.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// The folders of real tokenizers: with a part of their vocabulary in the repository, whole ones if ../shared exists.
std::vector<std::filesystem::path> real_tokenizers();

// The lines of a JSON Lines file.
std::vector<Json> read_rows(const std::filesystem::path& path);

// The tokenizers of golden.jsonl, and of golden_models.jsonl: objects of "name", "tokenizer", "rows".
std::vector<Json> golden_bpe();
std::vector<Json> golden_models();
// All of them that can encode every text.
std::vector<Json> golden_tokenizers();

// Encodes and decodes every row at once and as streams. Rows have "text", "ids" (null: encoding is an error) and
// optionally "ids_no_special", "decoded".
void check_rows(const Tokenizer& tokenizer, const std::vector<Json>& rows);

// The ids of a stream fed in chunks of the given size; `forced_cuts` receives their number.
std::vector<int32_t> encode_in_chunks(const Tokenizer& tokenizer, const std::string& text, size_t chunk,
                                      int64_t max_piece_bytes, int64_t& forced_cuts);

}  // namespace headroom
