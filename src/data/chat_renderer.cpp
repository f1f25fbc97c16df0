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

constexpr int64_t kRowSteps = 64'000'000;  // over all renderings of a row
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

// For each message, whether it is the assistant's.
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

// A rendering up to the end of the last message's text; templates may show it without the space around it.
std::string up_to_last(std::string rendered, const std::string& last, const RowPlace& place) {
  const size_t begin = last.find_first_not_of(" \t\r\n"), end = last.find_last_not_of(" \t\r\n");
  const std::string trimmed = begin == std::string::npos ? last : last.substr(begin, end - begin + 1);
  for (const std::string& shown : {last, trimmed})
    if (const size_t at = rendered.rfind(shown); at != std::string::npos) {
      rendered.resize(at + shown.size());
      return rendered;
    }
  refuse_row(place, "the template does not show the last message's text as it is, so an answer cannot continue it",
             "ask for a new answer");
}

}  // namespace

// One row's values, and the renderings of its first messages.
class ChatRenderer::Conversation {
 public:
  Conversation(const ChatRenderer& renderer, const Row& row, const RowPlace& place, const std::tm& now)
      : renderer_(renderer), place_(place), now_(now), budget_(row_limits(renderer.memory_bytes_)) {
    messages_ = chat_value(row, row.messages, place, budget_);
    if (!row.tools.empty()) tools_ = chat_value(row, row.tools, place, budget_);
    assistant_ = speakers_of(messages_.list(), place);
  }

  // Further variables of the template, an object.
  void set_arguments(const Row& row, const RowPart& part) {
    arguments_ = chat_value(row, part, place_, budget_);
    if (!arguments_.is(jinja::Type::dict))
      refuse_row(place_, "the template's arguments are not an object", "give {\"name\": value, ...}");
  }

  // The text of the last message, for an answer that continues it.
  std::string last_text() const {
    const jinja::Value* text = nullptr;
    if (!messages_.list().items.empty()) text = messages_.list().items.back().dict().find("content");
    if (text == nullptr || !text->is(jinja::Type::text) || text->text().empty())
      refuse_row(place_, "the last message has no text to continue", "give it a content, or ask for a new answer");
    return std::string(text->text());
  }

  // For each message, whether it is the assistant's.
  const std::vector<bool>& assistant() const { return assistant_; }

  // The first `count` messages.
  jinja::Rendered render(size_t count, bool add_generation_prompt) {
    jinja::Limits limits = row_limits(renderer_.memory_bytes_);
    limits.steps -= steps_;
    jinja::Budget budget(limits);
    try {
      const jinja::Value variables = variables_of(count, add_generation_prompt);
      jinja::Rendered rendered = renderer_.chat_.made.render(variables.dict(), now_, budget);
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
    if (arguments_.is(jinja::Type::dict))
      for (const auto& [name, value] : arguments_.dict().entries()) variables->set(name, value);
    return jinja::Value(jinja::DictRef(std::move(variables)));
  }

  const ChatRenderer& renderer_;
  const RowPlace place_;
  const std::tm now_;
  jinja::Budget budget_;
  jinja::Value messages_, tools_, arguments_;
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
  return render_prompt(list.dump(), PromptForm(), source);
}

std::string ChatRenderer::render_prompt(std::string_view messages, const PromptForm& form,
                                        std::string_view source) const {
  std::string text;
  const auto part = [&](std::string_view json) {
    const RowPart at{static_cast<int64_t>(text.size()), static_cast<int64_t>(json.size()), false};
    text += json;
    return at;
  };
  Row row;
  row.kind = RowKind::messages;
  row.messages = part(messages);
  if (!form.tools.empty()) row.tools = part(form.tools);
  const RowPart arguments = part(form.arguments);
  const RowBytes bytes{text};
  row.bytes = &bytes;
  Conversation conversation(*this, row, {source}, local_now());
  if (!form.arguments.empty()) conversation.set_arguments(row, arguments);
  const size_t all = conversation.assistant().size();
  if (!form.goes_on) return conversation.render(all, form.opens_answer).text;
  return up_to_last(conversation.render(all, false).text, conversation.last_text(), {source});
}

ScoredText ChatRenderer::render(const Row& row, const RowPlace& place) const {
  Conversation conversation(*this, row, place, now_);
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
