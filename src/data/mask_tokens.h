// The mask token of masked language modelling, and the tokens that are never masked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace headroom {

// The mask token named by tokenizer_config.json or special_tokens_map.json in `folder` (may be empty: none), else
// `[MASK]` or `<mask>`. Throws Error(format) if one of the files is malformed.
std::optional<int32_t> find_mask_token(const Tokenizer& tokenizer, const std::filesystem::path& folder);

// The ids of all special tokens and of those that the post-processor puts around a text, sorted.
std::vector<int32_t> special_token_ids(const Tokenizer& tokenizer);

}  // namespace headroom
