// Python's operators on values.
#pragma once

#include "jinja/value.h"

namespace headroom::jinja {

enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

// bool(value).
bool truth(const Value& value);
bool equal(Budget& budget, const Value& a, const Value& b);
// a < b; throws Problem for types that have no order.
bool less(Budget& budget, const Value& a, const Value& b);
// item in container.
bool contains(Budget& budget, const Value& container, const Value& item);
Value arithmetic(Budget& budget, Operator op, const Value& a, const Value& b);
bool compare(Budget& budget, Operator op, const Value& a, const Value& b);
Value negate(const Value& value);
Value positive(const Value& value);

// Throws Problem if `value` is undefined: "'x' is undefined".
void require_defined(const Value& value);

// What a for loop visits: the list itself, the characters of a text, the keys of a dict, nothing for undefined.
// Uses up a generator.
ListRef iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);
// len(value).
int64_t length_of(Budget& budget, const Value& value);

// Text with & < > ' " escaped for HTML.
std::string escape_html(Budget& budget, std::string_view text);

}  // namespace headroom::jinja
