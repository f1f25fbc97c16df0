#include "engine/generation_text.h"

#include <algorithm>

#include "base/error.h"
#include "data/chat_renderer.h"
#include "data/token_cache_builder.h"
#include "formats/json.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// From generation_config.json; empty without the file.
std::vector<int64_t> configured_eos(const fs::path& directory) {
  const fs::path path = directory / "generation_config.json";
  std::error_code status;
  if (!fs::exists(path, status)) return {};
  HfConfig config;
  config.source = path;
  config.raw = read_json(path);
  return config.eos_ids();
}

}  // namespace

void check_prompt(const PromptOptions& options, const ModelFiles& model) {
  if (!options.chat && !options.system.empty())
    throw Error(ErrorKind::usage, "--system without --chat: a plain prompt has no messages",
                "add --chat, or put the text before the prompt");
  if (!options.chat) return;
  if (options.prompt.empty())
    throw Error(ErrorKind::usage, "--chat without a message", "give --prompt, or pipe the message in with --prompt -");
  if (!has_chat_template(model.tokenizer))
    throw Error(
        ErrorKind::usage, fmt::format("--chat: {} has no chat template", model.tokenizer.string()),
        "take the template from the model's instruct version and put chat_template.jinja next to tokenizer.json; or "
        "leave out --chat: a base model continues the prompt");
}

int64_t rendering_bytes(const PromptOptions& options) {
  if (!options.chat) return 0;
  constexpr int64_t kMarks = 64 << 10;  // text that a template puts around the messages
  const auto text = static_cast<int64_t>(options.prompt.size() + options.system.size());
  return std::clamp(ChatRenderer::kHeapPerTextByte * (text + kMarks), ChatRenderer::kLeastBytes,
                    ChatRenderer::kMostBytes);
}

std::string prompt_text(const PromptOptions& options, const Tokenizer& tokenizer, const ModelFiles& model) {
  if (!options.chat) return options.prompt;
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", options.prompt});
  return ChatRenderer(model.tokenizer, tokenizer, rendering_bytes(options)).render_prompt(messages, "--chat");
}

std::vector<int32_t> prompt_ids(const PromptOptions& options, const std::string& text, const Tokenizer& tokenizer,
                                const ModelFiles& model) {
  std::vector<int32_t> ids;
  // A chat's template itself writes BOS and similar tokens.
  if (!text.empty()) ids = tokenizer.encode(text, !options.chat);
  if (ids.empty()) {
    const std::optional<int32_t> bos = tokenizer.bos_id();
    const std::optional<int64_t> fallback = model.config.bos_id();
    if (!bos && !fallback)
      throw Error(ErrorKind::usage, "the tokenizer has no BOS token to begin with", "give --prompt");
    ids.push_back(bos ? *bos : static_cast<int32_t>(*fallback));
  }
  for (int32_t id : ids)
    if (id >= model.spec.vocab)
      throw Error(ErrorKind::format,
                  fmt::format("the prompt has token id {}, the model's vocab_size is {}", id, model.spec.vocab),
                  "the tokenizer and the model do not belong together");
  return ids;
}

std::vector<int32_t> stop_ids(const std::vector<std::string>& stops, const Tokenizer& tokenizer,
                              const ModelFiles& model) {
  std::vector<int32_t> ids;
  if (tokenizer.eos_id()) ids.push_back(*tokenizer.eos_id());
  for (int64_t id : model.config.eos_ids()) ids.push_back(static_cast<int32_t>(id));
  for (int64_t id : configured_eos(model.directory)) ids.push_back(static_cast<int32_t>(id));
  for (const std::string& stop : stops)
    if (const std::optional<int32_t> id = tokenizer.token_id(stop); id && tokenizer.decode({&*id, 1}).empty())
      ids.push_back(*id);
  return ids;
}

}  // namespace headroom
