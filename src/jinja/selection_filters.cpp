// Filters that run other filters and tests over a list: map, select, reject, selectattr, rejectattr.
#include <fmt/format.h>

#include "jinja/attributes.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/problem.h"
#include "jinja/tests.h"

namespace headroom::jinja {
namespace {

// The arguments after the first `count`.
Arguments behind(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

Value map_attribute(const FilterCall& call) {
  const auto bound = call.bind({"", "attribute", "default"});
  const bool has_default = bound[2] != nullptr && !bound[2]->is(Type::none);
  if (has_default && bound[1]->is(Type::text) && bound[1]->text().find('.') != std::string::npos)
    refuse("map with a default for a path of attributes");
  std::vector<Value> mapped;
  const ListRef list = iterate(call.budget, call.value);
  for (const Value& item : list->items) {
    call.budget.step();
    mapped.push_back(get_path(call.budget, item, *bound[1]));
    if (has_default && mapped.back().is(Type::undefined)) mapped.back() = *bound[2];
  }
  return make_list(call.budget, ListKind::generator, std::move(mapped));
}

Value map_filter(const FilterCall& call) {
  if (!truth(call.value)) return make_list(call.budget, ListKind::generator, {});
  const Arguments& arguments = call.arguments;
  if (arguments.positional.empty()) {
    for (const auto& argument : arguments.named)
      if (argument.first == "attribute") return map_attribute(call);
    fail("map without a filter");
  }
  const std::string& name = text_argument("map", &arguments.positional[0]);
  const Arguments rest = behind(arguments, 1);
  std::vector<Value> mapped;
  const ListRef list = iterate(call.budget, call.value);
  for (const Value& item : list->items) {
    call.budget.step();
    mapped.push_back(run_filter(call.budget, name, item, rest));
  }
  return make_list(call.budget, ListKind::generator, std::move(mapped));
}

// Keeps the items that meet the test, or those that don't. With `by_attribute`, an attribute of each item is tested.
Value choose(const FilterCall& call, bool keep, bool by_attribute) {
  const std::vector<Value>& given = call.arguments.positional;
  std::vector<Value> kept;
  if (!truth(call.value)) return make_list(call.budget, ListKind::generator, {});
  const size_t used = by_attribute ? 1 : 0;
  if (given.size() < used) fail(fmt::format("{} without an attribute", call.name));
  const bool tests = given.size() > used;
  const std::string name = tests ? text_argument(call.name, &given[used]) : "";
  const Arguments rest = tests ? behind(call.arguments, used + 1) : Arguments{};
  const ListRef list = iterate(call.budget, call.value);
  for (const Value& item : list->items) {
    call.budget.step();
    const Value value = by_attribute ? get_path(call.budget, item, given[0]) : item;
    if ((tests ? run_test(call.budget, name, value, rest) : truth(value)) == keep) kept.push_back(item);
  }
  return make_list(call.budget, ListKind::generator, std::move(kept));
}

constexpr Filter kFilters[] = {
    {"map", map_filter},
    {"reject", [](const FilterCall& call) { return choose(call, false, false); }},
    {"rejectattr", [](const FilterCall& call) { return choose(call, false, true); }},
    {"select", [](const FilterCall& call) { return choose(call, true, false); }},
    {"selectattr", [](const FilterCall& call) { return choose(call, true, true); }},
};

}  // namespace

std::span<const Filter> selection_filters() { return kFilters; }

}  // namespace headroom::jinja
