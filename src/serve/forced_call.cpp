#include "serve/forced_call.h"

#include <utility>

namespace headroom {

ForcedCall::ForcedCall(const ToolUse& use, std::string id)
    : has_name_(use.mode == ToolUse::Mode::named),
      place_(has_name_ ? Place::before_arguments : Place::head),
      outer_(has_name_ ? 0 : 1) {
  call_.id = std::move(id);
  call_.name = use.name;
}

bool ForcedCall::is_mark(char c) {
  if (in_string_) {
    if (!std::exchange(escaped_, !escaped_ && c == '\\') && c == '"') in_string_ = false;
    return false;
  }
  in_string_ = c == '"';
  depth_ += c == '{' || c == '[';
  depth_ -= c == '}' || c == ']';
  return !in_string_;
}

void ForcedCall::read_head(char c) {
  const bool was_string = in_string_, mark = is_mark(c);
  if (!mark) {
    if (!was_string) string_.clear();
    string_ += c;
  } else if (c == ':' && depth_ == 1) {
    key_ = std::exchange(string_, {});
    if (key_ == "\"arguments\"") place_ = Place::before_arguments;
  } else if ((c == ',' || c == '}') && key_ == "\"name\"") {
    const OrderedJson name = OrderedJson::parse(string_, nullptr, false);
    has_name_ = name.is_string();
    if (has_name_) call_.name = name.get<std::string>();
    key_.clear();
  }
}

void ForcedCall::read_arguments(char c) {
  const bool space = !in_string_ && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
  if (space) {
    if (place_ == Place::arguments) spaces_ += c;
    return;
  }
  place_ = Place::arguments;
  const bool mark = is_mark(c);
  if (mark && depth_ < outer_) {  // what holds the call ends
    complete_ = true;
    return;
  }
  call_.arguments += std::exchange(spaces_, {}) + c;
  complete_ = mark && outer_ == 0 && depth_ == 0 && (c == '}' || c == ']');
}

void ForcedCall::read(char c) {
  if (complete_) return;
  place_ == Place::head ? read_head(c) : read_arguments(c);
}

std::optional<ToolCall> ForcedCall::push(std::string_view text) {
  for (const char c : text) read(c);
  if (!has_name_ || place_ == Place::head || (!call_.begins() && call_.arguments.empty())) return {};
  return std::exchange(call_, ToolCall{});
}

}  // namespace headroom
