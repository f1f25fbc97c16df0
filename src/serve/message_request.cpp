#include "serve/message_request.h"

#include <fmt/format.h>

#include "serve/api_error.h"
#include "serve/chat_body.h"
#include "serve/json_fields.h"

namespace headroom {
namespace {

// Adds a block of a message that is not text; returns false if it is text.
bool add_tool_block(const JsonFields& block, const std::string& role, OrderedJson& messages) {
  const std::string type = block.text("type").value_or("");
  if (type == "tool_use" && role == "assistant") {
    const OrderedJson* input = block.object("input");
    const auto id = block.text("id"), name = block.text("name");
    if (!id || !name) block.refuse("id", "and name of the call are missing");
    append_call(messages, *id, *name, input ? *input : OrderedJson::object());
  } else if (type == "tool_result" && role == "user") {
    const auto id = block.text("tool_use_id");
    if (!id) block.refuse("tool_use_id", "is missing");
    const std::string text = block.find("content") ? joined_text(block, "content", {"text"}) : "";
    messages.push_back({{"role", "tool"}, {"tool_call_id", *id}, {"content", text}});
  } else if ((type == "thinking" || type == "redacted_thinking") && role == "assistant") {
    // from an earlier turn; not shown again
  } else if (type == "text") {
    return false;
  } else {
    block.refuse("type", fmt::format("{} is not supported in a message of the {}: this model reads text",
                                     OrderedJson(type).dump(), role));
  }
  return true;
}

void add_message(const OrderedJson& message, size_t at, OrderedJson& messages) {
  if (!message.is_object()) throw ApiError(400, fmt::format("messages[{}] must be an object", at), "messages");
  const std::string where = fmt::format("messages[{}].", at);
  const JsonFields fields(message, where);
  const std::string role = fields.text("role").value_or("");
  if (role != "user" && role != "assistant") fields.refuse("role", "must be user or assistant");
  const OrderedJson* content = fields.find("content");
  if (!content || !content->is_array()) {
    append_message(messages, role, joined_text(fields, "content", {"text"}));
    return;
  }
  bool in_text = false;  // the last block was text of this message
  for (size_t i = 0; i < content->size(); ++i) {
    const OrderedJson& block = (*content)[i];
    if (!block.is_object()) fields.refuse("content", "must be a text or a list of blocks");
    const JsonFields inner(block, fmt::format("{}content[{}].", where, i));
    const bool is_text = !add_tool_block(inner, role, messages);
    if (is_text) {
      const auto text = inner.text("text");
      if (!text) inner.refuse("text", "is missing");
      if (in_text)
        messages.back()["content"] = messages.back()["content"].get<std::string>() + kPartBreak + *text;
      else
        append_message(messages, role, *text);
    }
    in_text = is_text;
  }
}

void add_input_schemas(const JsonFields& fields, OrderedJson& body) {
  const OrderedJson* tools = fields.array("tools");
  for (size_t i = 0; tools && i < tools->size(); ++i) {
    const OrderedJson& tool = (*tools)[i];
    if (!tool.is_object() || !tool.value("name", OrderedJson()).is_string() ||
        !tool.value("input_schema", OrderedJson()).is_object())
      fields.refuse("tools",
                    "must be a list of {\"name\":...,\"input_schema\":{...}}; other kinds of tools are not supported");
    OrderedJson function = {{"name", tool["name"]}};
    if (const auto about = tool.find("description"); about != tool.end()) function["description"] = *about;
    function["parameters"] = tool["input_schema"];
    body["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  const OrderedJson* choice = fields.object("tool_choice");
  if (!choice) return;
  const JsonFields inner(*choice, "tool_choice.");
  const std::string type = inner.text("type").value_or("");
  if (type == "auto" || type == "none")
    body["tool_choice"] = type;
  else if (type == "any")
    body["tool_choice"] = "required";
  else if (type == "tool" && inner.text("name"))
    body["tool_choice"] = {{"type", "function"}, {"function", {{"name", *inner.text("name")}}}};
  else
    inner.refuse("type", "must be auto, any, none, or tool with a name");
}

void add_stops(const JsonFields& fields, OrderedJson& body) {
  if (const OrderedJson* stops = fields.array("stop_sequences")) {
    for (const OrderedJson& stop : *stops)
      if (!stop.is_string() || stop.get_ref<const std::string&>().empty())
        fields.refuse("stop_sequences", "must be a list of texts that are not empty");
    body["stop"] = *stops;
  }
}

// Whether the template should let the model think; its thoughts are part of the text.
void add_thinking(const JsonFields& fields, OrderedJson& body) {
  const OrderedJson* thinking = fields.object("thinking");
  if (!thinking) return;
  const JsonFields inner(*thinking, "thinking.");
  const std::string type = inner.text("type").value_or("");
  if (type != "enabled" && type != "adaptive" && type != "disabled")
    inner.refuse("type", "must be enabled, adaptive or disabled");
  body["chat_template_kwargs"] = {{"enable_thinking", type != "disabled"}};
}

// {"output_config":{"format":{"type":"json_schema","schema":{...}}}}
void add_output_format(const JsonFields& fields, OrderedJson& body) {
  const OrderedJson* config = fields.object("output_config");
  const OrderedJson* format = config ? JsonFields(*config, "output_config.").object("format") : nullptr;
  if (!format) return;
  const JsonFields inner(*format, "output_config.format.");
  const OrderedJson* schema = inner.find("schema");
  if (inner.text("type").value_or("") != "json_schema" || !schema)
    inner.refuse("type", "must be json_schema, with a schema");
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", *schema}}}};
}

OrderedJson chat_messages(const JsonFields& fields) {
  OrderedJson messages = OrderedJson::array();
  if (fields.find("system")) append_message(messages, "system", joined_text(fields, "system", {"text"}));
  const OrderedJson* said = fields.array("messages");
  if (!said || said->empty()) fields.refuse("messages", "is missing or empty");
  for (size_t i = 0; i < said->size(); ++i) add_message((*said)[i], i, messages);
  return messages;
}

// Removes the last message and returns its text, which the answer continues.
std::string take_prefill(OrderedJson& messages) {
  if (messages.size() < 2) return {};  // messages without content add none
  const OrderedJson& last = messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls")) return {};
  std::string text = last["content"].get<std::string>();
  messages.erase(messages.size() - 1);
  return text;
}

}  // namespace

TextRequest read_message_request(const OrderedJson& body, int64_t vocab, bool counts_only) {
  const JsonFields fields(body);
  OrderedJson messages = chat_messages(fields);
  std::string prefill = take_prefill(messages);
  OrderedJson chat = {{"messages", std::move(messages)}};
  copy_fields(fields, {"model", "temperature", "top_p", "top_k", "seed"}, chat);
  if (!counts_only) {
    if (!fields.find("max_tokens")) fields.refuse("max_tokens", "is missing");
    copy_fields(fields, {"max_tokens", "stream"}, chat);
  }
  add_thinking(fields, chat);
  add_stops(fields, chat);
  add_input_schemas(fields, chat);
  add_output_format(fields, chat);
  TextRequest request = read_text_request(TextApi::chat, chat, vocab);
  request.api = TextApi::message;
  request.prefill = std::move(prefill);
  return request;
}

}  // namespace headroom
