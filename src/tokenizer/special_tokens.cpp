#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "formats/token_names.h"

namespace headroom {
namespace {

constexpr std::array<std::string_view, 5> kBosNames = {"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>", "[BOS]"};
constexpr std::array<std::string_view, 7> kEosNames = {"</s>",       "<|end_of_text|>", "<eos>", "<|endoftext|>",
                                                       "<|im_end|>", "<|eot_id|>",      "[EOS]"};

// The id of a member that is a token, or an object with its "content". Empty if it is null, missing, an object without
// content or not in the vocabulary. Throws Error(format) if it is anything else.
std::optional<int32_t> named_id(const Json& config, const char* key, const TokenizerPipeline& pipeline,
                                const std::string& source) {
  if (!config.is_object() || !config.contains(key) || config[key].is_null()) return std::nullopt;
  const Json& value = config[key];
  const Json* content = &value;
  if (value.is_object()) {
    if (!value.contains("content")) return std::nullopt;
    content = &value["content"];
  }
  if (!content->is_string())
    throw Error(ErrorKind::format, fmt::format("{}: {} is not a token", source, key),
                "correct or re-download the file");
  return pipeline.id(content->get<std::string>());
}

template <size_t n>
std::optional<int32_t> common_id(const std::array<std::string_view, n>& names, const TokenizerPipeline& pipeline) {
  for (const std::string_view name : names)
    if (const std::optional<int32_t> id = pipeline.special_id(name)) return id;
  return std::nullopt;
}

}  // namespace

void find_special_tokens(const std::filesystem::path& folder, TokenizerPipeline& pipeline) {
  bool configured = false;  // a file names special tokens: then no names are guessed
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = folder / name;
    std::error_code status;
    if (folder.empty() || !std::filesystem::is_regular_file(file, status)) continue;
    const Json config = read_token_names(file);
    configured = configured || (config.is_object() && (config.contains("bos_token") || config.contains("eos_token")));
    if (!pipeline.bos_id) pipeline.bos_id = named_id(config, "bos_token", pipeline, file.string());
    if (!pipeline.eos_id) pipeline.eos_id = named_id(config, "eos_token", pipeline, file.string());
  }
  const PostProcessor& added = pipeline.post_processor();
  if (!pipeline.bos_id && !added.prefix.empty()) pipeline.bos_id = added.prefix.front();
  if (!pipeline.eos_id && !added.suffix.empty()) pipeline.eos_id = added.suffix.back();
  if (configured) return;
  if (!pipeline.bos_id) pipeline.bos_id = common_id(kBosNames, pipeline);
  if (!pipeline.eos_id) pipeline.eos_id = common_id(kEosNames, pipeline);
}

}  // namespace headroom
