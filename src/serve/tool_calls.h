// Tools of a chat: how a request describes them, the grammar of the answer, and the calls in an answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/json_fields.h"
#include "serve/text_request.h"

namespace headroom {

// A call; in a stream a part of one, of which the first has id and name.
struct ToolCall {
  int64_t index = 0;  // among the answer's calls
  std::string id;     // "call_..."
  std::string name;
  std::string arguments;  // JSON text

  bool begins() const { return !id.empty(); }
};

// Marks around a call in the format of Hermes and Qwen.
inline constexpr std::string_view kCallOpen = "<tool_call>", kCallClose = "</tool_call>";

// Whether one of the tools has this name.
bool is_tool(const OrderedJson& tools, std::string_view name);

// Sets tools, tool_use and, if a call is required, the grammar. Throws ApiError(400).
void read_tools(const JsonFields& fields, TextRequest& request);

// The calls that a model wrote by itself, in the formats of common templates: <tool_call>{...}</tool_call> (Hermes,
// Qwen), or {"name","parameters"} alone (Llama 3). Empty when there are none; `content` is the text before them.
std::vector<ToolCall> written_calls(const OrderedJson& tools, std::string_view text, std::string_view id,
                                    std::string& content);

}  // namespace headroom
