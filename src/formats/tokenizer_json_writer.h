// Writes a tokenizer.json of HF tokenizers as a stream, with byte-pair encoding.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/tokenizer_json.h"

namespace headroom {

// The merges in the order of model.merges: by rank; those that share one by the merged token, then left and right, as
// transformers lists the merges that it makes of scores.
std::vector<TokenMerge> listed_merges(const TokenMerges& merges);

// Writes every member that HF tokenizers require, with components as in `json.root`; merges as pairs. A token that has
// two ids is written with the one that a text gives it. Tokens are UTF-8. Holds the list of merges besides `json`.
// Throws as StreamedFile.
void write_tokenizer_json(const TokenizerJson& json, const std::filesystem::path& path);

}  // namespace headroom
