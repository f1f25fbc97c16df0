// Objects and arrays of a schema.
#pragma once

#include "grammar/schema_rules.h"

namespace headroom {

// Properties in the schema's order, of which those that are not required may be left out; then additional ones if the
// schema has them. Without additionalProperties a schema that lists properties has no others.
GrammarStateId schema_object_states(SchemaRules& rules, const SchemaPlace& at);

// prefixItems (or a list of items), then items, between minItems and maxItems.
GrammarStateId schema_array_states(SchemaRules& rules, const SchemaPlace& at);

}  // namespace headroom
