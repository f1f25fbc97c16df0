// Which tokens begin and end a text.
#pragma once

#include <filesystem>

#include "tokenizer/pipeline.h"

namespace headroom {

// Sets pipeline.bos_id and eos_id: from tokenizer_config.json and special_tokens_map.json in `folder` (empty: from
// neither), else from what the post-processor adds, else from common names. Throws Error(format) if one of the files is
// malformed.
void find_special_tokens(const std::filesystem::path& folder, TokenizerPipeline& pipeline);

}  // namespace headroom
