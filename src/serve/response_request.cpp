#include "serve/response_request.h"

#include <fmt/format.h>

#include "serve/api_error.h"
#include "serve/chat_body.h"
#include "serve/json_fields.h"

namespace headroom {
namespace {

void refuse_state(const JsonFields& fields) {
  for (const char* name : {"previous_response_id", "conversation"})
    if (fields.find(name))
      fields.refuse(name, "is not supported, since no state is kept: send the earlier items in input");
  if (fields.find("prompt")) fields.refuse("prompt", "is not supported: no templates are kept; use instructions");
  if (fields.flag("background").value_or(false))
    fields.refuse("background", "is not supported, since no state is kept: leave it out, or stream");
  if (fields.text("truncation").value_or("disabled") == "auto")
    fields.refuse("truncation", "auto is not supported: what is longer than the context is refused");
  if (fields.integer("top_logprobs", 0, kMostTokens).value_or(0) > 0)
    fields.refuse("top_logprobs", "is not supported here: use /v1/chat/completions");
  fields.flag("store");
  fields.flag("parallel_tool_calls");
  fields.object("metadata");
}

std::string role_of(const JsonFields& item) {
  const std::string role = item.text("role").value_or("");
  if (role == "developer") return "system";
  if (role != "user" && role != "assistant" && role != "system")
    item.refuse("role", "must be user, assistant, system or developer");
  return role;
}

std::string required_text(const JsonFields& item, const char* name) {
  const std::optional<std::string> text = item.text(name);
  if (!text) item.refuse(name, "is missing");
  return *text;
}

void add_item(const OrderedJson& item, size_t at, OrderedJson& messages) {
  if (!item.is_object()) throw ApiError(400, fmt::format("input[{}] must be an object", at), "input");
  const JsonFields fields(item, fmt::format("input[{}].", at));
  const std::string type = fields.text("type").value_or("message");
  if (type == "message") {
    append_message(messages, role_of(fields), joined_text(fields, "content", {"input_text", "output_text", "text"}));
  } else if (type == "function_call") {
    append_call(messages, required_text(fields, "call_id"), required_text(fields, "name"),
                required_text(fields, "arguments"));
  } else if (type == "function_call_output") {
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", required_text(fields, "call_id")},
                        {"content", joined_text(fields, "output", {"input_text", "output_text"})}});
  } else {
    fields.refuse("type", fmt::format("{} is not supported: message, function_call or function_call_output",
                                      OrderedJson(type).dump()));
  }
}

OrderedJson messages_of(const JsonFields& fields) {
  OrderedJson messages = OrderedJson::array();
  if (const auto instructions = fields.text("instructions")) append_message(messages, "system", *instructions);
  const OrderedJson* input = fields.find("input");
  if (!input) fields.refuse("input", "is missing");
  if (input->is_string()) {
    append_message(messages, "user", input->get<std::string>());
    return messages;
  }
  if (!input->is_array() || input->empty()) fields.refuse("input", "must be a text or a list of items");
  for (size_t i = 0; i < input->size(); ++i) add_item((*input)[i], i, messages);
  return messages;
}

void add_tools(const JsonFields& fields, OrderedJson& body) {
  const OrderedJson* tools = fields.array("tools");
  for (size_t i = 0; tools && i < tools->size(); ++i) {
    const OrderedJson& tool = (*tools)[i];
    if (!tool.is_object() || tool.value("type", OrderedJson()) != "function" ||
        !tool.value("name", OrderedJson()).is_string())
      fields.refuse("tools",
                    "must be functions: {\"type\":\"function\",\"name\":...}; other kinds of tools are not supported");
    OrderedJson function = tool;
    function.erase("type");
    body["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  const OrderedJson* choice = fields.find("tool_choice");
  if (!choice) return;
  body["tool_choice"] = *choice;
  if (choice->is_object())
    body["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", required_text(JsonFields(*choice, "tool_choice."), "name")}}}};
}

void add_format(const JsonFields& fields, OrderedJson& body) {
  const OrderedJson* text = fields.object("text");
  const OrderedJson* format = text ? JsonFields(*text, "text.").object("format") : nullptr;
  if (!format) return;
  const JsonFields inner(*format, "text.format.");
  const std::string type = required_text(inner, "type");
  if (type != "text" && type != "json_object" && type != "json_schema")
    inner.refuse("type", "must be text, json_object or json_schema");
  body["response_format"] = {{"type", type}};
  if (type != "json_schema") return;
  const OrderedJson* schema = inner.find("schema");
  if (!schema) inner.refuse("schema", "is missing");
  body["response_format"]["json_schema"] = {{"schema", *schema}};
}

// The fields that the answer repeats.
std::string settings_of(const JsonFields& fields) {
  OrderedJson settings = {{"instructions", nullptr},
                          {"max_output_tokens", nullptr},
                          {"metadata", OrderedJson::object()},
                          {"parallel_tool_calls", true},
                          {"temperature", 1.0},
                          {"text", {{"format", {{"type", "text"}}}}},
                          {"tool_choice", "auto"},
                          {"tools", OrderedJson::array()},
                          {"top_p", 1.0}};
  OrderedJson given = settings;
  copy_fields(fields,
              {"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "text",
               "tool_choice", "tools", "top_p"},
              given);
  if (std::string all = given.dump(); all.size() <= kMostRepeated) return all;
  copy_fields(fields, {"max_output_tokens", "temperature", "top_p"}, settings);
  return settings.dump();
}

}  // namespace

TextRequest read_response_request(const OrderedJson& body, int64_t vocab) {
  const JsonFields fields(body);
  refuse_state(fields);
  OrderedJson chat = {{"messages", messages_of(fields)}};
  copy_fields(fields,
              {"model", "temperature", "top_p", "top_k", "min_p", "seed", "stream", "presence_penalty",
               "frequency_penalty", "repetition_penalty", "stop"},
              chat);
  if (const auto most = fields.integer("max_output_tokens", 1, kMostTokens)) chat["max_tokens"] = *most;
  add_tools(fields, chat);
  add_format(fields, chat);
  TextRequest request = read_text_request(TextApi::chat, chat, vocab);
  request.api = TextApi::response;
  request.settings = settings_of(fields);
  return request;
}

}  // namespace headroom
