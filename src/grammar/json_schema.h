// JSON Schema as a grammar of valid JSON texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton_builder.h"

namespace headroom {

// Adds the rules of a schema; the first is the whole text. `source` names it in errors, with the JSON pointer. `notes`:
// keywords that are not enforced. Throws Error(usage | format).
void add_json_schema(std::string_view text, const std::string& source, AutomatonBuilder& builder,
                     std::vector<std::string>& notes);

// Adds the rules of any JSON object, of JsonValues::kDepth levels at most.
void add_json_object(AutomatonBuilder& builder);

}  // namespace headroom
