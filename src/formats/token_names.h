// tokenizer_config.json and special_tokens_map.json: which tokens are special, and the chat template.
#pragma once

#include <filesystem>

#include "formats/json.h"

namespace headroom {

// Reads these members of such a file, at most 16 MiB: bos_token, eos_token, unk_token, sep_token, pad_token, cls_token,
// mask_token and chat_template; others take no memory. Throws like read_json().
Json read_token_names(const std::filesystem::path& path);

// A bound on the heap bytes that reading a file of `file_bytes` takes.
constexpr int64_t token_names_bytes(int64_t file_bytes) { return 3 * file_bytes + 4096; }

}  // namespace headroom
