#include "jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

const Filter* find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
    const auto found =
        std::find_if(filters.begin(), filters.end(), [name](const Filter& filter) { return filter.name == name; });
    if (found != filters.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value run_filter(Budget& budget, std::string_view name, const Value& value, const Arguments& arguments) {
  const Filter* filter = find_filter(name);
  if (filter == nullptr) refuse(fmt::format("the filter {}", name));
  const Level level(budget);
  return filter->run({budget, name, value, arguments});
}

}  // namespace headroom::jinja
