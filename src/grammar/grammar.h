// The compiled format of a text: a JSON schema, any JSON object, a regular expression, choices, EBNF.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/limits.h"
#include "grammar/pushdown_automaton.h"

namespace headroom {

struct GrammarSource {
  enum class Kind : uint8_t { json_schema, json_object, regular_expression, choices, ebnf };
  Kind kind = Kind::json_object;
  std::string name;  // in errors: "--json-schema", the file
  std::string text;
  std::vector<std::string> choices;

  int64_t text_bytes() const;
  // A bound on the heap bytes that compile_grammar() holds at once, its result included.
  int64_t compile_bound(const GrammarLimits& limits) const { return compile_bound(kind, text_bytes(), limits); }
  // The same for any source of so many bytes.
  static int64_t compile_bound(Kind kind, int64_t text_bytes, const GrammarLimits& limits);
};

struct Grammar {
  PushdownAutomaton automaton;
  std::vector<std::string> notes;  // the parts of a schema that are not enforced
};

// Throws Error(usage | format) naming the position: a JSON pointer, an offset, a line. Time and memory are bounded by
// the limits, whatever the source.
Grammar compile_grammar(const GrammarSource& source, const GrammarLimits& limits = {});

}  // namespace headroom
