// The call in an answer that is one, or may be one, as its text grows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/tool_calls.h"

namespace headroom {

// {"name":...,"arguments":...}, or the arguments alone where the tool was named.
class GrowingCall {
 public:
  // The text is what the grammar of read_tools() allows.
  GrowingCall(const ToolUse& use, std::string id);
  // The text may be anything. It is a call once it has named one of the tools and its arguments, or parameters, begin
  // as an object. `tools` outlive it.
  GrowingCall(const OrderedJson& tools, std::string id);

  // The part of the call that has become known with the text: the first with id and name. Nothing where there is none.
  std::optional<ToolCall> push(std::string_view text);
  // The same in two steps: a character, and what has become known since the last such part.
  void read(char c);
  std::optional<ToolCall> take();

  // The text is a call.
  bool certain() const { return has_name_ && place_ == Place::arguments; }
  // It is none.
  bool failed() const { return failed_; }
  // The arguments have come to their end.
  bool complete() const { return complete_; }
  // And so has what is around them.
  bool closed() const { return complete_ && depth_ == 0; }

 private:
  enum class Place : uint8_t { head, before_arguments, arguments };

  void read_head(char c);
  void read_key();
  void read_name();
  void read_arguments(char c);
  // Whether a mark in the head cannot be of a call.
  bool is_out_of_place(char c) const;
  // Whether the character is a mark of JSON, not a part of a string. Follows strings and nesting.
  bool is_mark(char c);

  const OrderedJson* tools_ = nullptr;  // null: the text has to be a call
  ToolCall call_;                       // the part that is being made; begins() before the first was given
  bool has_name_ = false;
  Place place_ = Place::head;
  int outer_ = 1;  // depth around the arguments
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, complete_ = false, failed_ = false;
  std::string key_, string_;  // of the head: the member's name, the last string, both as JSON
  std::string spaces_;        // of the arguments, which may be behind their end
};

}  // namespace headroom
