// The methods of lists, tuples and dicts.
#include "jinja/attributes.h"
#include "jinja/operators.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

Value dict_view(Budget& budget, const Dict& dict, std::string_view name) {
  std::vector<Value> items;
  items.reserve(dict.entries().size());
  budget.step(static_cast<int64_t>(dict.entries().size()));
  for (const auto& [key, value] : dict.entries())
    items.push_back(name == "keys" ? key : name == "values" ? value : make_list(budget, ListKind::tuple, {key, value}));
  const ListKind kind = name == "keys" ? ListKind::keys : name == "values" ? ListKind::values : ListKind::items;
  return make_list(budget, kind, std::move(items));
}

Value dict_get(const Dict& dict, const Arguments& arguments) {
  const auto bound = arguments.bind("get", {"", ""}, 1);
  require_hashable(*bound[0]);
  const Value* found = dict.find(*bound[0]);
  if (found != nullptr) return *found;
  return bound[1] == nullptr ? Value() : *bound[1];
}

}  // namespace

Value call_container_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments) {
  if (self.is(Type::dict)) {
    if (name == "get") return dict_get(self.dict(), arguments);
    arguments.bind(name, {});
    return name == "copy" ? self : dict_view(budget, self.dict(), name);
  }
  const Value& wanted = *arguments.bind(name, {""}, 1)[0];
  int64_t count = 0, index = 0;
  for (const Value& item : self.list().items) {
    const bool same = equal(budget, item, wanted);
    if (same && name == "index") return Value(index);
    count += same;
    ++index;
  }
  if (name == "index") fail("index: the value is not in the list");
  return Value(count);
}

}  // namespace headroom::jinja
