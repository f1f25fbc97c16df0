// The grammar that a request asks for.
#pragma once

#include <optional>

#include "grammar/grammar.h"
#include "serve/json_fields.h"

namespace headroom {

// From response_format (json_object, json_schema), guided_json, guided_regex, guided_choice, guided_grammar or
// structured_outputs; at most one of them. nullopt when any text is allowed. Throws ApiError(400).
std::optional<GrammarSource> read_response_format(const JsonFields& fields);

}  // namespace headroom
