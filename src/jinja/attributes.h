// value.name, value[item], value[a:b:c], as Jinja's immutable sandbox gives them.
#pragma once

#include <string_view>

#include "jinja/arguments.h"
#include "jinja/value.h"

namespace headroom::jinja {

// Attributes before items: value.items of a dict is the method. Refuses, by name, Python's methods that are not
// supported; unknown names, and methods that would change a list or dict, are undefined.
Value get_attribute(Budget& budget, const Value& value, std::string_view name);
// Items before attributes.
Value get_item(Budget& budget, const Value& value, const Value& item);
// The bounds are integers or none.
Value get_slice(Budget& budget, const Value& value, const Value& first, const Value& last, const Value& step);
// Follows "a.b.0", as filters with an attribute do.
Value get_path(Budget& budget, const Value& value, const Value& path);

// Calls the method `name` of `self`, which get_attribute() gave.
Value call_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments);
// The parts of call_method().
Value call_text_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments);
Value call_container_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments);

}  // namespace headroom::jinja
