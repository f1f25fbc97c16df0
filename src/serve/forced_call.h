// The call in an answer that has to be one, as its text grows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/tool_calls.h"

namespace headroom {

// The text is what the grammar of read_tools() allows: {"name":...,"arguments":...}, or the arguments alone where the
// tool was named.
class ForcedCall {
 public:
  ForcedCall(const ToolUse& use, std::string id);

  // The part of the call that has become known with the text: the first with id and name. Nothing where there is none.
  std::optional<ToolCall> push(std::string_view text);
  // The arguments have come to their end.
  bool complete() const { return complete_; }

 private:
  enum class Place : uint8_t { head, before_arguments, arguments };

  void read(char c);
  void read_head(char c);
  void read_arguments(char c);
  // Whether the character is a mark of JSON, not a part of a string. Follows strings and nesting.
  bool is_mark(char c);

  ToolCall call_;  // the part that is being made; begins() before the first was given
  bool has_name_ = false;
  Place place_;
  int outer_;  // depth around the arguments
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, complete_ = false;
  std::string key_, string_;  // of the head: the member's name, the last string, both as JSON
  std::string spaces_;        // of the arguments, which may be behind their end
};

}  // namespace headroom
