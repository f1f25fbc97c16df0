// The body of a chat completion, made of another API's request: what both of OpenAI's later API and Anthropic's need.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "serve/json_fields.h"

namespace headroom {

// A text, or a list of parts of one of the types ({"type":"text","text":"..."}), joined. Throws ApiError(400) naming
// the field for other parts: models here read text.
std::string joined_text(const JsonFields& fields, const char* name, std::initializer_list<std::string_view> types);

// Copies members that mean the same in both.
void copy_fields(const JsonFields& from, std::initializer_list<const char*> names, OrderedJson& body);

// Adds a call to the last message where that is the assistant's, else to a new one.
void append_call(OrderedJson& messages, const std::string& id, const std::string& name, OrderedJson arguments);

// Appends a message; one of the system behind another of the system joins it, as templates expect one.
void append_message(OrderedJson& messages, const std::string& role, const std::string& text);

}  // namespace headroom
