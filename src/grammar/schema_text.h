// Strings and numbers of a schema.
#pragma once

#include "grammar/schema_rules.h"

namespace headroom {

// A string between minLength and maxLength, or of `pattern`, or of an enforced format: date, time, date-time, uuid,
// ipv4, email.
GrammarStateId schema_string_states(SchemaRules& rules, const OrderedJson& schema);

// A number or an integer between its bounds.
GrammarStateId schema_number_states(SchemaRules& rules, const OrderedJson& schema, bool integer);

}  // namespace headroom
