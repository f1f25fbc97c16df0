// Reads a tool call, or a text that may be one, while it grows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/tool_calls.h"

namespace headroom {

// {"name":...,"arguments":...}, or only the arguments if the tool is already named.
class GrowingCall {
 public:
  // For text that follows the grammar of read_tools().
  GrowingCall(const ToolUse& use, std::string id);
  // For any text. It is a call once it has named one of the tools and its arguments, or parameters, start as an object.
  // `tools` must outlive it.
  GrowingCall(const OrderedJson& tools, std::string id);

  // The part of the call that became known with the text; the first part has id and name. nullopt when there is none.
  std::optional<ToolCall> push(std::string_view text);
  // The same in two steps: read a character, and take what became known since the last take().
  void read(char c);
  std::optional<ToolCall> take();

  // Whether the text is certainly a call.
  bool certain() const { return has_name_ && place_ == Place::arguments; }
  // Whether it is certainly not one.
  bool failed() const { return failed_; }
  // Whether the arguments are complete.
  bool complete() const { return complete_; }
  // Whether the object around them is complete too.
  bool closed() const { return complete_ && depth_ == 0; }

 private:
  enum class Place : uint8_t { head, before_arguments, arguments };

  void read_head(char c);
  void read_key();
  void read_name();
  void read_arguments(char c);
  // Whether a mark in the head cannot belong to a call.
  bool is_out_of_place(char c) const;
  // Whether the character is a mark of JSON and not inside a string. Keeps track of strings and nesting.
  bool is_mark(char c);

  const OrderedJson* tools_ = nullptr;  // null: the text must be a call
  ToolCall call_;                       // the part being built; begins() until the first part is taken
  bool has_name_ = false;
  Place place_ = Place::head;
  int outer_ = 1;  // nesting depth around the arguments
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, complete_ = false, failed_ = false;
  std::string key_, string_;  // in the head: the member's name and the last string, both as JSON
  std::string spaces_;        // of the arguments; they may come after their end
};

}  // namespace headroom
