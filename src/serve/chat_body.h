// Builds the body of a chat completion from the request of another API: shared by OpenAI's responses and Anthropic's
// messages.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "serve/json_fields.h"

namespace headroom {

// Between the parts of a text, which clients send as separate paragraphs; as in vLLM.
inline constexpr char kPartBreak = '\n';

// The texts of a list of {"text":"..."} objects, which has been checked.
std::string joined_parts(const OrderedJson& parts);

// A text, or a list of parts with one of the types ({"type":"text","text":"..."}), joined. Throws ApiError(400) with
// the field for other parts, because the models read only text.
std::string joined_text(const JsonFields& fields, const char* name, std::initializer_list<std::string_view> types);

// Copies members that mean the same in both APIs.
void copy_fields(const JsonFields& from, std::initializer_list<const char*> names, OrderedJson& body);

// Adds a call to the last message if it is the assistant's, else to a new one.
void append_call(OrderedJson& messages, const std::string& id, const std::string& name, OrderedJson arguments);

// Appends a message. Consecutive system messages are joined, because templates expect only one.
void append_message(OrderedJson& messages, const std::string& role, const std::string& text);

}  // namespace headroom
