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
  std::vector<std::pair<size_t, size_t>> scored;  // byte ranges, in ascending order
};

// Used by one thread.
class ChatRenderer {
 public:
  // Loads the template as load_chat_template() does. strftime_now() gives the time of construction.
  ChatRenderer(const std::filesystem::path& tokenizer_folder, const Tokenizer& tokenizer);

  // Renders a row of RowKind::messages, whose buffer is parsed in place. The assistant's turns are what stands in
  // {% generation %} blocks when the template has any. Else turn i is what rendering the messages up to i adds to those
  // before it with add_generation_prompt: its text and end marker. Throws Error(format) naming file and line for
  // messages without a role, for what the template refuses, and where a rendering does not begin with the one before.
  ScoredText render(const Row& row, const RowPlace& place) const;

  // The text of `messages` with what the template puts before an answer (add_generation_prompt). Throws Error(format)
  // for what the template refuses, naming `source`.
  std::string render_prompt(std::span<const ChatMessage> messages, std::string_view source) const;

  // A bound on the heap bytes that render() holds at once, its result included.
  static int64_t memory_bytes();

 private:
  class Conversation;

  ChatTemplate chat_;
  std::tm now_;
};

}  // namespace headroom
