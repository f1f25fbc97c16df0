// Arbitrary bytes as a JSON schema: refused, or its masks can be followed; nothing exceeds the limits.
#include <cstdint>

#include "walk_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headroom::walk_grammar(headroom::GrammarSource::Kind::json_schema, data, size);
  return 0;
}
