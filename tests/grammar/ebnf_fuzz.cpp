// Arbitrary bytes as a grammar in EBNF: refused, or its masks can be followed; nothing exceeds the limits.
#include <cstdint>

#include "walk_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headroom::walk_grammar(headroom::GrammarSource::Kind::ebnf, data, size);
  return 0;
}
