// Jinja's filters: `value | trim`.
#pragma once

#include <span>
#include <string_view>

#include "jinja/arguments.h"

namespace headroom::jinja {

// A call of a filter: its value and arguments, and its name for messages.
struct FilterCall {
  Budget& budget;
  std::string_view name;
  const Value& value;
  const Arguments& arguments;

  std::vector<const Value*> bind(std::initializer_list<std::string_view> names, size_t required = 0) const {
    return arguments.bind(name, names, required);
  }
};

struct Filter {
  std::string_view name;
  Value (*run)(const FilterCall&);
};

bool is_filter(std::string_view name);
// Throws Problem(unsupported) for a name that is not a filter of the subset.
Value run_filter(Budget& budget, std::string_view name, const Value& value, const Arguments& arguments);

// The filters by what they work on.
std::span<const Filter> text_filters();
std::span<const Filter> number_filters();
std::span<const Filter> sequence_filters();
std::span<const Filter> selection_filters();

}  // namespace headroom::jinja
