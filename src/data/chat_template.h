// The chat template of a tokenizer's folder, and the special tokens that it names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jinja/template.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// A longer template is refused.
inline constexpr int64_t kChatTemplateBytes = jinja::Limits{}.template_bytes;

struct ChatTemplate {
  jinja::Template made;
  std::vector<std::pair<std::string, std::string>> special_tokens;  // "bos_token", "<s>" ...
};

// Reads chat_template.jinja in `folder`, else "chat_template" of tokenizer_config.json: a text, or a list of
// {"name","template"} of which "default" is taken. The special tokens come from tokenizer_config.json, then from
// special_tokens_map.json, BOS and EOS also from the tokenizer. If `folder` is a .gguf, as tokenizer_place() finds it,
// template and tokens are those of its metadata; so it is in the functions below. Throws Error(usage) naming the file
// and the remedy when there is no template (or `folder` is empty), Error(format) when a file is malformed or the
// template is not supported.
ChatTemplate load_chat_template(const std::filesystem::path& folder, const Tokenizer& tokenizer);

// The same from a template's text; `source` names it in errors.
ChatTemplate make_chat_template(const std::string& text, std::string source, const std::filesystem::path& folder,
                                const Tokenizer& tokenizer);

// Whether load_chat_template() finds one there, well-formed or not. Throws Error(format) for a malformed
// tokenizer_config.json.
bool has_chat_template(const std::filesystem::path& folder);

// A hash of the files that load_chat_template() reads; 0 when there is none.
uint64_t chat_template_key(const std::filesystem::path& folder);

}  // namespace headroom
