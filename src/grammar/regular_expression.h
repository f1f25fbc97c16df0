// Regular expressions: a subset with the same meaning in JavaScript and Python.
#pragma once

#include <string>
#include <string_view>

#include "grammar/expression.h"

namespace headroom {

// Literals, `.` (all but line ends), classes [..] with ranges and negation, \d \w \s \D \W \S (of ASCII), \t \n \r \f
// \v \xHH \uHHHH, groups (..) and (?:..), |, * + ? {n} {n,} {n,m} and their lazy forms, ^ and $ at the ends of the
// whole or of its alternatives. Lookaround, back references, \b and \p are refused.
//
// `whole`: the text has to match from its beginning to its end; else a match may lie anywhere in it (as in a
// schema's `pattern`), where ^ and $ do not hold it. `source` names it in errors, with the offset in bytes. Throws
// Error(usage).
ExpressionPointer parse_regular_expression(std::string_view text, const std::string& source, bool whole,
                                           AutomatonBuilder& builder);

}  // namespace headroom
