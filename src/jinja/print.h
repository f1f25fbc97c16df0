// Values as text: Python's str() and repr(), and JSON.
#pragma once

#include <string>
#include <vector>

#include "jinja/value.h"

namespace headroom::jinja {

// str(value). Refuses what Python prints with an address (functions, generators, namespaces, loop).
std::string to_text(Budget& budget, const Value& value);
// The same, without a copy if the value is a text; else the result is in `buffer`.
std::string_view text_view(Budget& budget, const Value& value, std::string& buffer);
// repr() of a float.
std::string print_real(double value);

// The options of the filter tojson, as of json.dumps.
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  bool pretty = false;  // one item per line, indented
  std::string indent;
  std::string item_separator = ", ", key_separator = ": ";
};

// Throws Problem for values that are not JSON.
std::string to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace headroom::jinja
