#include "data/mask_tokens.h"

#include <algorithm>

#include "formats/file.h"
#include "formats/token_names.h"
#include "tokenizer/pipeline.h"

namespace headroom {
namespace {

// A token as these files write it: its text, or an object with its "content".
std::optional<std::string> named_token(const Json& config, const char* key) {
  if (!config.is_object() || !config.contains(key)) return std::nullopt;
  const Json* value = &config[key];
  if (value->is_object() && value->contains("content")) value = &(*value)["content"];
  if (!value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

}  // namespace

std::optional<int32_t> find_mask_token(const Tokenizer& tokenizer, const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    if (folder.empty() || !is_file_there(folder / name)) continue;
    const std::optional<std::string> token = named_token(read_token_names(folder / name), "mask_token");
    if (!token) continue;
    if (const auto id = tokenizer.token_id(*token)) return id;
  }
  for (const char* token : {"[MASK]", "<mask>"})
    if (const auto id = tokenizer.token_id(token)) return id;
  return std::nullopt;
}

std::vector<int32_t> special_token_ids(const Tokenizer& tokenizer) {
  const TokenizerPipeline& pipeline = tokenizer.pipeline();
  std::vector<int32_t> ids = pipeline.post_processor().prefix;
  ids.insert(ids.end(), pipeline.post_processor().suffix.begin(), pipeline.post_processor().suffix.end());
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (pipeline.token(id, false) && !pipeline.token(id, true)) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace headroom
