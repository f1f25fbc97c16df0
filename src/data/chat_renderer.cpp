#include "data/chat_renderer.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/error.h"
#include "data/chat_values.h"
#include "formats/json.h"
#include "jinja/problem.h"

namespace headroom {
namespace {

constexpr int64_t kRowSteps = 64'000'000;  // of all renderings of a row
constexpr const char* kPrefixRemedy =
    "mark the assistant's turns with {% generation %} in the template, or render the conversations into "
    "{\"prompt\",\"completion\"} rows";

// Values of the row and of a rendering, a quarter of the memory each; three texts, and the two that the largest
// operation makes, of a sixteenth.
jinja::Limits row_limits(int64_t memory_bytes) {
  jinja::Limits limits;
  limits.steps = kRowSteps;
  limits.text_bytes = memory_bytes / ChatRenderer::kHeapPerTextByte;
  limits.live_bytes = memory_bytes / 4;
  return limits;
}

std::tm local_now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm now{};
  ::localtime_r(&seconds, &now);
  return now;
}

bool begins_with(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

// Whether the assistant speaks, for each message.
std::vector<bool> speakers_of(const jinja::List& messages, const RowPlace& place) {
  std::vector<bool> speakers;
  for (const jinja::Value& message : messages.items) {
    const jinja::Value* role = message.is(jinja::Type::dict) ? message.dict().find("role") : nullptr;
    if (role == nullptr || !role->is(jinja::Type::text))
      refuse_row(place, fmt::format("messages[{}] has no role", speakers.size()),
                 "messages are [{\"role\":\"user\",\"content\":\"...\"}, ...]");
    speakers.push_back(role->text() == "assistant");
  }
  return speakers;
}

}  // namespace

// One row's values, and the renderings of its first messages.
class ChatRenderer::Conversation {
 public:
  Conversation(const ChatRenderer& renderer, const Row& row, const RowPlace& place)
      : renderer_(renderer), place_(place), budget_(row_limits(renderer.memory_bytes_)) {
    messages_ = chat_value(row, row.messages, place, budget_);
    if (!row.tools.empty()) tools_ = chat_value(row, row.tools, place, budget_);
    assistant_ = speakers_of(messages_.list(), place);
  }

  // Whether the assistant speaks, for each message.
  const std::vector<bool>& assistant() const { return assistant_; }

  // The first `count` messages.
  jinja::Rendered render(size_t count, bool add_generation_prompt) {
    jinja::Limits limits = row_limits(renderer_.memory_bytes_);
    limits.steps -= steps_;
    jinja::Budget budget(limits);
    try {
      const jinja::Value variables = variables_of(count, add_generation_prompt);
      jinja::Rendered rendered = renderer_.chat_.made.render(variables.dict(), renderer_.now_, budget);
      steps_ += budget.steps();
      return rendered;
    } catch (const jinja::Refusal& refusal) {
      refuse_row(place_, fmt::format("{}{}", scope_of(count), refusal.what()), refusal.remedy());
    } catch (const Error& error) {
      const bool may_have_more = renderer_.memory_bytes_ < kMostBytes;
      refuse_row(place_, fmt::format("{}{}", scope_of(count), error.what()),
                 error.remedy() + (may_have_more ? "; with a larger --memory longer ones are rendered" : ""));
    } catch (const jinja::Problem& problem) {
      refuse_row(place_, "the conversation holds " + problem.text, "split the conversation into shorter ones");
    }
  }

 private:
  std::string scope_of(size_t count) const {
    return count == assistant_.size() ? "" : fmt::format("rendering the first {} messages: ", count);
  }

  jinja::Value variables_of(size_t count, bool add_generation_prompt) {
    const auto& all = messages_.list().items;
    const auto text = [this](const std::string& bytes) { return jinja::make_text(budget_, bytes); };
    auto variables = std::make_shared<jinja::Dict>(budget_);
    for (const auto& [name, token] : renderer_.chat_.special_tokens) variables->set(text(name), text(token));
    const std::vector<jinja::Value> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    variables->set(text("messages"), jinja::make_list(budget_, jinja::ListKind::list, first));
    variables->set(text("tools"), tools_);
    variables->set(text("documents"), jinja::Value());
    variables->set(text("add_generation_prompt"), jinja::Value(add_generation_prompt));
    return jinja::Value(jinja::DictRef(std::move(variables)));
  }

  const ChatRenderer& renderer_;
  const RowPlace& place_;
  jinja::Budget budget_;
  jinja::Value messages_, tools_;
  std::vector<bool> assistant_;
  int64_t steps_ = 0;
};

ChatRenderer::ChatRenderer(const std::filesystem::path& tokenizer_folder, const Tokenizer& tokenizer,
                           int64_t memory_bytes)
    : ChatRenderer(load_chat_template(tokenizer_folder, tokenizer), memory_bytes) {}

ChatRenderer::ChatRenderer(ChatTemplate chat, int64_t memory_bytes)
    : chat_(std::move(chat)), now_(local_now()), memory_bytes_(memory_bytes) {
  HR_CHECK(memory_bytes >= kLeastBytes && memory_bytes <= kMostBytes, "{} bytes for conversations", memory_bytes);
}

std::string ChatRenderer::render_prompt(std::span<const ChatMessage> messages, std::string_view source) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return render_prompt(list.dump(), {}, source);
}

std::string ChatRenderer::render_prompt(std::string_view messages, std::string_view tools,
                                        std::string_view source) const {
  std::string text(messages);
  text += tools;
  Row row;
  row.kind = RowKind::messages;
  const RowBytes bytes{text};
  row.bytes = &bytes;
  row.messages = {0, static_cast<int64_t>(messages.size()), false};
  if (!tools.empty()) row.tools = {static_cast<int64_t>(messages.size()), static_cast<int64_t>(tools.size()), false};
  Conversation conversation(*this, row, {source});
  return conversation.render(conversation.assistant().size(), true).text;
}

ScoredText ChatRenderer::render(const Row& row, const RowPlace& place) const {
  Conversation conversation(*this, row, place);
  const std::vector<bool>& assistant = conversation.assistant();
  if (assistant.empty()) return {};
  jinja::Rendered whole = conversation.render(assistant.size(), false);
  ScoredText result{std::move(whole.text), {}};
  if (chat_.made.marks_generations()) {
    for (const auto& range : whole.generations)
      if (range.first < range.second) result.scored.push_back(range);
    return result;
  }
  for (size_t i = 0; i < assistant.size(); ++i) {
    if (!assistant[i]) continue;
    const std::string before = conversation.render(i, true).text;
    const std::string after = i + 1 == assistant.size() ? result.text : conversation.render(i + 1, false).text;
    const bool follows = begins_with(after, before);
    if (!follows || !begins_with(result.text, after))
      refuse_row(place,
                 follows
                     ? fmt::format("the template renders the first {} messages differently when others follow", i + 1)
                     : fmt::format("the template renders what comes before the assistant's messages[{}] differently "
                                   "without it",
                                   i),
                 kPrefixRemedy);
    if (after.size() > before.size()) result.scored.emplace_back(before.size(), after.size());
  }
  return result;
}

}  // namespace headroom
