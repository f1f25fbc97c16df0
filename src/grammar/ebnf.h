// Grammars in GBNF, the EBNF of llama.cpp's grammar files.
#pragma once

#include <string>
#include <string_view>

#include "grammar/automaton_builder.h"

namespace headroom {

// Rules `name ::= ...` of "literals", [classes], `.` (any character), names, groups, |, * + ? {n} {n,} {n,m}; comments
// from # to the end of the line. Rule `root` is the text. Errors name `source` and the line. Throws Error(usage).
void add_ebnf(std::string_view text, const std::string& source, AutomatonBuilder& builder);

}  // namespace headroom
