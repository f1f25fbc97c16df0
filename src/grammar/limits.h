// Limits of a grammar and its masks, known before one is compiled.
#pragma once

#include <cstdint>

namespace headroom {

struct GrammarLimits {
  int64_t source_bytes = int64_t{256} << 10;  // text of a schema, a regular expression, a grammar, all choices
  int64_t rules = 4096;
  int64_t place_bytes = int64_t{1} << 20;  // of the names of their positions
  int64_t states = 65536;                  // of the pushdown automaton
  int64_t compile_steps = 2'000'000;       // of compiling one
  int64_t nesting = 64;                    // nested groups of an expression
  int64_t stack_depth = 256;               // nested rules while a text is matched; deeper ones are not entered
  int64_t threads = 4096;                  // simultaneous states of one configuration
  int64_t configurations = 16384;          // kept at once
  int64_t mask_steps = 10'000'000;         // of computing one mask
  int64_t table_bytes = int64_t{4} << 20;  // of configurations and stacks
  int64_t cache_bytes = int64_t{6} << 20;  // of kept masks, at most so many:
  int64_t kept_masks = 512;
};

}  // namespace headroom
