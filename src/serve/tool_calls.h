// Tools of a chat: what a request says of them, what the model's answer has to be, and the calls in an answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/json_fields.h"
#include "serve/text_request.h"

namespace headroom {

// A call, or of a stream a part of one: id and name are of its first part.
struct ToolCall {
  int64_t index = 0;  // of the answer's calls
  std::string id;     // "call_..."
  std::string name;
  std::string arguments;  // JSON text

  bool begins() const { return !id.empty(); }
};

// Around a call in the form of Hermes and Qwen.
inline constexpr std::string_view kCallOpen = "<tool_call>", kCallClose = "</tool_call>";

// Whether one of the tools has the name.
bool is_tool(const OrderedJson& tools, std::string_view name);

// Fills tools, tool_use and, where a call is required, the grammar. Throws ApiError(400).
void read_tools(const JsonFields& fields, TextRequest& request);

// The calls that a model wrote by itself, in the forms of common templates: <tool_call>{...}</tool_call> (Hermes,
// Qwen), or {"name","parameters"} alone (Llama 3). Empty where there are none; `content` is the text before them.
std::vector<ToolCall> written_calls(const OrderedJson& tools, std::string_view text, std::string_view id,
                                    std::string& content);

}  // namespace headroom
