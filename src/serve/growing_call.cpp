#include "serve/growing_call.h"

#include <utility>

namespace headroom {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

GrowingCall::GrowingCall(const ToolUse& use, std::string id) : has_name_(use.mode == ToolUse::Mode::named) {
  if (has_name_) place_ = Place::before_arguments, outer_ = 0;
  call_.id = std::move(id);
  call_.name = use.name;
}

GrowingCall::GrowingCall(const OrderedJson& tools, std::string id) : tools_(&tools) { call_.id = std::move(id); }

bool GrowingCall::is_mark(char c) {
  if (in_string_) {
    if (!std::exchange(escaped_, !escaped_ && c == '\\') && c == '"') in_string_ = false;
    return false;
  }
  in_string_ = c == '"';
  depth_ += c == '{' || c == '[';
  depth_ -= c == '}' || c == ']';
  return !in_string_;
}

bool GrowingCall::is_out_of_place(char c) const {
  if (is_space(c)) return false;
  if (depth_ <= 0) return true;                                        // no object, or one that ends without arguments
  if (key_ == "\"name\"") return c != ',';                             // the name is not a string
  return key_.empty() && string_.empty() && (c != '{' || depth_ > 1);  // a call's object does not start like this
}

void GrowingCall::read_key() {
  key_ = std::exchange(string_, {});
  if (key_ == "\"arguments\"" || (tools_ && key_ == "\"parameters\"")) {
    // Without the name it is not known to be a call: it stays a head, and the head ends without arguments.
    if (has_name_ || !tools_) place_ = Place::before_arguments;
  }
}

void GrowingCall::read_name() {
  const OrderedJson name = OrderedJson::parse(string_, nullptr, false);
  has_name_ = name.is_string();
  if (has_name_) call_.name = name.get<std::string>();
  failed_ = tools_ && !(has_name_ && is_tool(*tools_, call_.name));
  key_.clear();
}

void GrowingCall::read_head(char c) {
  const bool was_string = in_string_, mark = is_mark(c);
  if (!mark) {
    if (!was_string) string_.clear();
    string_ += c;
  } else if (tools_ && is_out_of_place(c)) {
    failed_ = true;
  } else if (c == ':' && depth_ == 1) {
    read_key();
  } else if ((c == ',' || c == '}') && key_ == "\"name\"") {
    read_name();
  }
}

void GrowingCall::read_arguments(char c) {
  if (!in_string_ && is_space(c)) {
    if (place_ == Place::arguments) spaces_ += c;
    return;
  }
  if (tools_ && place_ == Place::before_arguments && c != '{') {
    failed_ = true;
    return;
  }
  place_ = Place::arguments;
  const bool mark = is_mark(c);
  if (mark && depth_ < outer_) {  // the end of the object around the arguments
    complete_ = true;
    return;
  }
  call_.arguments += std::exchange(spaces_, {}) + c;
  const bool is_alone = tools_ || outer_ == 0;  // only their own last mark tells where they end
  complete_ = is_alone && mark && depth_ == outer_ && (c == '}' || c == ']');
}

void GrowingCall::read(char c) {
  if (failed_) return;
  if (complete_)
    is_mark(c);
  else
    place_ == Place::head ? read_head(c) : read_arguments(c);
}

std::optional<ToolCall> GrowingCall::take() {
  const bool known = tools_ ? certain() : has_name_ && place_ != Place::head;
  if (!known || (!call_.begins() && call_.arguments.empty())) return {};
  return std::exchange(call_, ToolCall{});
}

std::optional<ToolCall> GrowingCall::push(std::string_view text) {
  for (const char c : text) read(c);
  return take();
}

}  // namespace headroom
