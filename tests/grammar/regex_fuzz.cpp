// Arbitrary bytes as a regular expression: refused, or its masks can be followed; nothing exceeds the limits.
#include <cstdint>

#include "walk_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headroom::walk_grammar(headroom::GrammarSource::Kind::regular_expression, data, size);
  return 0;
}
