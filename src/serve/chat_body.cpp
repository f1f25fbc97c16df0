#include "serve/chat_body.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/api_error.h"

namespace headroom {

std::string joined_parts(const OrderedJson& parts) {
  std::string text;
  for (const OrderedJson& part : parts) {
    if (&part != &parts.front()) text += kPartBreak;
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

std::string joined_text(const JsonFields& fields, const char* name, std::initializer_list<std::string_view> types) {
  const OrderedJson* content = fields.find(name);
  if (!content) fields.refuse(name, "is missing");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) fields.refuse(name, "must be a text or a list of parts");
  for (const OrderedJson& part : *content) {
    const OrderedJson type = part.is_object() ? part.value("type", OrderedJson()) : OrderedJson();
    const bool known = std::any_of(types.begin(), types.end(), [&](std::string_view one) { return type == one; });
    if (!known || !part.value("text", OrderedJson()).is_string())
      fields.refuse(name, fmt::format("has a part that is not {{\"type\":\"{}\",\"text\":\"...\"}}: this model reads "
                                      "text",
                                      *types.begin()));
  }
  return joined_parts(*content);
}

void copy_fields(const JsonFields& from, std::initializer_list<const char*> names, OrderedJson& body) {
  for (const char* name : names)
    if (const OrderedJson* value = from.find(name)) body[name] = *value;
}

void append_call(OrderedJson& messages, const std::string& id, const std::string& name, OrderedJson arguments) {
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back({{"role", "assistant"}, {"content", ""}});
  messages.back()["tool_calls"].push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
}

void append_message(OrderedJson& messages, const std::string& role, const std::string& text) {
  if (role == "system" && !messages.empty() && messages.back()["role"] == "system") {
    OrderedJson& content = messages.back()["content"];
    content = content.get<std::string>() + "\n\n" + text;
    return;
  }
  messages.push_back({{"role", role}, {"content", text}});
}

}  // namespace headroom
