#include "serve/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "engine/generation_text.h"
#include "grammar/token_trie.h"
#include "serve/api_error.h"
#include "serve/embedding_answer.h"
#include "tokenizer/token_bytes.h"

namespace headroom {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace

std::shared_ptr<void> ReservedBytes::reserve(int64_t bytes) {
  if (used_.fetch_add(bytes) + bytes > most_) {
    used_.fetch_sub(bytes);
    return nullptr;
  }
  return {static_cast<void*>(this), [this, bytes](void*) { used_.fetch_sub(bytes); }};
}

EncoderLimits EncoderLimits::of(int64_t max_model_len) {
  EncoderLimits limits;
  limits.body_bytes = std::clamp<int64_t>(512 * 1024 + 16 * max_model_len, 512 * 1024, 16 * kMiB);
  limits.body_values = 16384 + 8 * max_model_len;
  limits.queued_bytes = 2 * kMiB + 64 * max_model_len;
  limits.embedding_bytes = kMiB;
  limits.grammar_bytes = std::clamp<int64_t>(4 * kMiB + 1024 * max_model_len, 4 * kMiB, 32 * kMiB);
  limits.grammar.source_bytes = std::clamp<int64_t>(16 * max_model_len, 12 << 10, 64 << 10);
  limits.grammar.rules = 1024;
  limits.grammar.place_bytes = 128 << 10;
  limits.grammar.states = 16384;
  limits.grammar.compile_steps = 500'000;
  limits.grammar.configurations = 4096;
  limits.grammar.threads = 1024;
  limits.grammar.mask_steps = 2'000'000;
  limits.grammar.table_bytes = 512 << 10;
  limits.grammar.cache_bytes = 256 << 10;
  limits.grammar.kept_masks = 64;
  return limits;
}

int64_t EncoderLimits::memory_bytes(int64_t tokenizer_file) const {
  // For a body: each JSON value with its name; its text as JSON, as the fields read it, and as a chat's text.
  constexpr int64_t kValue = 128, kTexts = 4;
  // The worker does one thing at a time: it renders a chat, then compiles a grammar.
  return kValue * body_values + kTexts * body_bytes + queued_bytes + embedding_bytes + grammar_bytes +
         TokenTrie::build_bound(tokenizer_file) +
         std::max(GrammarSource::compile_bound(GrammarSource::Kind::json_schema, grammar.source_bytes, grammar),
                  ChatRenderer::kLeastBytes);
}

struct TextEncoder::Vocabulary {
  Vocabulary(const Tokenizer& tokenizer, int64_t vocab) : tokens(tokenizer), trie(tokens, vocab) {}
  TokenBytes tokens;
  TokenTrie trie;
};

TextEncoder::TextEncoder(const ServedModel& model, const EncoderLimits& limits, const std::string& chat_template)
    : model_(model), limits_(limits), queued_(limits.queued_bytes), grammars_(limits.grammar_bytes) {
  const std::filesystem::path& folder = model.files().tokenizer;
  if (!chat_template.empty())
    chats_ = std::make_unique<ChatRenderer>(
        make_chat_template(chat_template, "--chat-template", folder, model.tokenizer()), ChatRenderer::kLeastBytes);
  else if (has_chat_template(folder))
    chats_ = std::make_unique<ChatRenderer>(folder, model.tokenizer(), ChatRenderer::kLeastBytes);
  stop_ids_ = headroom::stop_ids({}, model.tokenizer(), model.files());
}

TextEncoder::~TextEncoder() = default;

std::vector<int32_t> TextEncoder::tokens_of(const std::string& text, bool add_special_tokens) const {
  try {
    return model_.tokenizer().encode(text, add_special_tokens);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "prompt");
  }
}

std::vector<int32_t> TextEncoder::chat_tokens(const OrderedJson& messages, const OrderedJson& tools,
                                              const ChatForm& form, const std::string& prefill) const {
  if (!chats_)
    throw ApiError(400, "the model has no chat template: use /v1/completions, or serve its instruct version",
                   "messages");
  try {
    const auto text_of = [](const OrderedJson& value) { return value.is_null() ? std::string() : value.dump(); };
    const std::string tool_text = text_of(tools), arguments = text_of(form.arguments);
    const std::string text = chats_->render_prompt(
        messages.dump(), PromptForm{form.opens_answer, form.goes_on, tool_text, arguments}, "messages");
    return model_.tokenizer().encode(text + prefill, false);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "messages");
  }
}

int64_t TextEncoder::check_prompts(std::vector<std::vector<int32_t>>& prompts, const char* name) const {
  const int64_t vocab = model_.plan().limits.vocab;
  int64_t longest = 0;
  for (std::vector<int32_t>& prompt : prompts) {
    if (prompt.empty()) {
      const std::optional<int32_t> bos = model_.tokenizer().bos_id();
      if (!bos)
        throw ApiError(400, fmt::format("{} is empty, and the tokenizer has no BOS token to begin with", name), name);
      prompt.push_back(*bos);
    }
    longest = std::max(longest, static_cast<int64_t>(prompt.size()));
    for (const int32_t id : prompt)
      if (id < 0 || id >= vocab)
        throw ApiError(400, fmt::format("the {} has token id {}; the model's vocabulary has {}", name, id, vocab),
                       name);
  }
  return longest;
}

std::vector<std::vector<int32_t>> TextEncoder::encode_inputs(const EmbeddingRequest& request,
                                                             std::shared_ptr<void>& held) {
  constexpr int64_t kInputBytes = 512, kTextBytes = 64;
  const auto count = static_cast<int64_t>(request.inputs.size());
  const int64_t text = count * (kTextBytes + embedding_text_bytes(request.dimensions, request.base64));
  if (text > limits_.embedding_bytes)
    throw ApiError(400,
                   fmt::format("{} embeddings of {} numbers are up to {} bytes; an answer has at most {}: send fewer "
                               "inputs at once, or ask for base64 or fewer dimensions",
                               count, request.dimensions, text, limits_.embedding_bytes),
                   "input");
  std::vector<std::vector<int32_t>> prompts;
  for (const PromptInput& input : request.inputs)
    prompts.push_back(input.is_ids ? input.ids : tokens_of(input.text, true));
  const int64_t longest = check_prompts(prompts, "input"), positions = model_.plan().limits.positions;
  if (longest > positions)
    throw ApiError(400,
                   fmt::format("the context has {} tokens and the longest input {}: shorten it, or serve with a "
                               "larger --max-model-len",
                               positions, longest),
                   "input", "context_length_exceeded");
  int64_t bytes = count * (kInputBytes + 4 * request.dimensions);
  for (const auto& prompt : prompts) bytes += 8 * static_cast<int64_t>(prompt.size());
  if (bytes > limits_.queued_bytes)
    throw ApiError(400,
                   fmt::format("the inputs take {} bytes, and requests may take {}: send fewer at once", bytes,
                               limits_.queued_bytes),
                   "input");
  held = queued_.reserve(bytes);
  if (!held) throw ApiError(503, "the requests that wait leave no room for another one");
  return prompts;
}

// Checks prompts and max_tokens against the context.
void TextEncoder::fit(const TextRequest& request, EncodedText& out) const {
  const int64_t positions = model_.plan().limits.positions;
  const int64_t longest = check_prompts(out.prompts, "prompt");
  const bool scores_only = request.max_tokens == 0;
  if (longest + (scores_only ? 0 : 1) > positions)
    throw ApiError(
        400,
        fmt::format("the context has {} tokens and the prompt {}: shorten the prompt, or serve with a larger "
                    "--max-model-len",
                    positions, longest),
        "prompt", "context_length_exceeded");
  const int64_t left = positions - longest;
  out.max_tokens = request.max_tokens.value_or(left);
  if (out.max_tokens > left)
    throw ApiError(400,
                   fmt::format("the context has {} tokens; the prompt has {} and max_tokens is {}, {} together",
                               positions, longest, out.max_tokens, longest + out.max_tokens),
                   "max_tokens", "context_length_exceeded");
}

void TextEncoder::add_matchers(const TextRequest& request, EncodedText& out, std::vector<std::shared_ptr<void>>& held) {
  if (!request.grammar) return;
  const int64_t vocab = model_.plan().limits.vocab;
  if (!vocabulary_) vocabulary_ = std::make_unique<Vocabulary>(model_.tokenizer(), vocab);
  auto grammar = [&] {
    try {
      return std::make_shared<Grammar>(compile_grammar(*request.grammar, limits_.grammar));
    } catch (const Error& error) {
      throw ApiError(400, fmt::format("{} ({})", error.what(), error.remedy()), request.grammar->name);
    }
  }();
  int64_t bytes = grammar->automaton.memory_bytes();
  for (int64_t i = 0; i < request.choices(); ++i) {
    auto matcher = std::make_shared<GrammarMatcher>(grammar->automaton, vocabulary_->trie, vocabulary_->tokens,
                                                    out.stop_ids, limits_.grammar);
    std::shared_ptr<void> room = grammars_.reserve(std::exchange(bytes, 0) + matcher->memory_bytes());
    if (!room) throw ApiError(503, "the grammars of the requests in progress leave no room for another one");
    held.push_back(std::move(room));
    struct Kept {
      std::shared_ptr<Grammar> grammar;
      std::shared_ptr<GrammarMatcher> matcher;
    };
    auto kept = std::make_shared<Kept>(Kept{grammar, std::move(matcher)});
    out.matchers.emplace_back(kept, kept->matcher.get());
  }
}

EncodedText TextEncoder::encode(const TextRequest& request, std::shared_ptr<void>& held) {
  EncodedText out;
  if (request.api != TextApi::completion) {
    out.prompts.push_back(chat_tokens(request.messages, request.tools, request.form, request.prefill));
  } else {
    for (const PromptInput& prompt : request.prompts) {
      out.prompts.push_back(prompt.is_ids ? prompt.ids : tokens_of(prompt.text, true));
      if (request.echo) out.echoes.push_back(prompt.is_ids ? model_.tokenizer().decode(prompt.ids) : prompt.text);
    }
  }
  if (!request.ignores_end || request.grammar) out.stop_ids = stop_ids_;
  if (!request.grammar) out.stop_ids.insert(out.stop_ids.end(), request.stop_ids.begin(), request.stop_ids.end());
  fit(request, out);
  // Prompts are held by the answer and by each sequence; a choice also holds its text, and parts for its tokens if
  // asked for.
  constexpr int64_t kChoiceBytes = 4096, kTokenBytes = 8, kPartBytes = 160;
  int64_t bytes = 0;
  for (const std::vector<int32_t>& prompt : out.prompts) bytes += 4 * static_cast<int64_t>(prompt.size());
  const bool parts = request.best >= 0 || request.return_ids;
  const int64_t tokens = request.keeps_text() ? std::min<int64_t>(out.max_tokens, 4096) : 64;
  bytes = bytes * (1 + request.n) + static_cast<int64_t>(request.settings.size()) +
          request.choices() * (kChoiceBytes + tokens * (kTokenBytes + (parts ? kPartBytes * (2 + request.best) : 0)));
  std::vector<std::shared_ptr<void>> all{queued_.reserve(bytes)};
  if (!all[0]) throw ApiError(503, "the requests that wait leave no room for another one");
  add_matchers(request, out, all);
  held = std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(all));
  return out;
}

}  // namespace headroom
