// A conversation -> its text and which parts of it the assistant wrote.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/chat_template.h"
#include "data/row.h"
#include "jinja/template.h"

namespace headroom {

struct ChatMessage {
  std::string role, content;
};

struct ScoredText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> scored;  // byte ranges, ascending
};

// How a conversation is rendered.
struct PromptForm {
  bool opens_answer = true;      // with the text that the template puts before an answer (add_generation_prompt)
  bool goes_on = false;          // ends with the last message's text, which the answer continues
  std::string_view tools{};      // a JSON list; empty: none
  std::string_view arguments{};  // a JSON object of further variables of the template; empty: none
};

// Used by one thread.
class ChatRenderer {
 public:
  // The heap for rendering, of which a text may have one byte in kHeapPerTextByte.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  static constexpr int64_t kLeastBytes = int64_t{4} << 20;
  static constexpr int64_t kHeapPerTextByte = 16;

  // Loads the template as load_chat_template() does. strftime_now() gives the time of construction in render(), so that
  // all rows of a data set have the same, and the present time in render_prompt(). Both hold at most `memory_bytes` of
  // heap at once, the result included, and refuse what needs more.
  ChatRenderer(const std::filesystem::path& tokenizer_folder, const Tokenizer& tokenizer,
               int64_t memory_bytes = kMostBytes);

  // The same with a template that is already loaded.
  ChatRenderer(ChatTemplate chat, int64_t memory_bytes);

  // Renders a row of RowKind::messages. The assistant's turns are the contents of {% generation %} blocks if the
  // template has any. Otherwise turn i is what rendering the messages up to i adds to rendering those before it with
  // add_generation_prompt: its text and end marker. Throws Error(format) naming file and line for messages without a
  // role, for messages that the template refuses, and if a rendering does not begin with the previous one.
  ScoredText render(const Row& row, const RowPlace& place) const;

  // The text of `messages` followed by the text that the template puts before an answer (add_generation_prompt). Throws
  // Error(format) for messages that the template refuses, naming `source`.
  std::string render_prompt(std::span<const ChatMessage> messages, std::string_view source) const;
  // The same for messages as JSON, a list of objects that may have members other than role and content for the
  // template. Also throws Error(format) if an answer cannot continue the last message: it has no text, or the template
  // does not show it unchanged.
  std::string render_prompt(std::string_view messages, const PromptForm& form, std::string_view source) const;

 private:
  class Conversation;

  ChatTemplate chat_;
  std::tm now_;
  int64_t memory_bytes_;
};

}  // namespace headroom
