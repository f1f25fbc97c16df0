// Filters of lists and dicts: length, first, join, sort ...; and default.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "jinja/attributes.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

Value default_filter(const FilterCall& call) {
  const auto bound = call.bind({"default_value", "boolean"});
  const bool replaced = call.value.is(Type::undefined) || (flag_argument(bound[1], false) && !truth(call.value));
  if (!replaced) return call.value;
  return bound[0] == nullptr ? make_text(call.budget, {}) : *bound[0];
}

Value length_filter(const FilterCall& call) {
  call.bind({});
  return Value(length_of(call.budget, call.value));
}

Value first(const FilterCall& call) {
  call.bind({});
  const ListRef list = iterate(call.budget, call.value);
  if (list->items.empty()) return make_undefined(call.budget, "an empty list has no first item");
  return list->items.front();
}

Value last(const FilterCall& call) {
  call.bind({});
  if (call.value.is(Type::list) && call.value.list().kind == ListKind::generator)
    fail("what a filter yields has no last item without '|list'");
  const ListRef list = iterate(call.budget, call.value);
  if (list->items.empty()) return make_undefined(call.budget, "an empty list has no last item");
  return list->items.back();
}

Value list_filter(const FilterCall& call) {
  call.bind({});
  return make_list(call.budget, ListKind::list, iterate(call.budget, call.value)->items);
}

Value reverse(const FilterCall& call) {
  call.bind({});
  if (call.value.is(Type::text)) return get_slice(call.budget, call.value, Value(), Value(), Value(int64_t{-1}));
  const bool generator = call.value.is(Type::list) && call.value.list().kind == ListKind::generator;
  const ListRef list = iterate(call.budget, call.value);
  return make_list(call.budget, generator ? ListKind::list : ListKind::generator,
                   std::vector<Value>(list->items.rbegin(), list->items.rend()));
}

Value join(const FilterCall& call) {
  const auto bound = call.bind({"d", "attribute"});
  const std::string separator = bound[0] == nullptr ? "" : to_text(call.budget, *bound[0]);
  const ListRef list = iterate(call.budget, call.value);
  std::string joined, buffer;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const bool plain = bound[1] == nullptr || bound[1]->is(Type::none);
    const Value item = plain ? list->items[i] : get_path(call.budget, list->items[i], *bound[1]);
    const std::string_view part = text_view(call.budget, item, buffer);
    call.budget.touch(separator.size() + part.size() + 64);
    if (joined.size() + separator.size() + part.size() > static_cast<size_t>(call.budget.limits().text_bytes))
      call.budget.check_text(joined.size() + separator.size() + part.size());
    if (i > 0) joined += separator;
    joined += part;
  }
  return make_text(call.budget, std::move(joined));
}

// The key that items are sorted or compared by: the value, or attributes of it; texts in lower case unless case
// matters.
class SortKey {
 public:
  SortKey(Budget& budget, const Value* attribute, bool case_sensitive, bool several)
      : budget_(budget), case_sensitive_(case_sensitive) {
    if (attribute == nullptr || attribute->is(Type::none)) {
      paths_.push_back(Value());
    } else if (several && attribute->is(Type::text)) {
      for (const std::string_view path : split(attribute->text(), ",", -1, false))
        paths_.push_back(constant_text(std::string(path)));
    } else {
      paths_.push_back(*attribute);
    }
  }
  Value of(const Value& item) const {
    if (paths_.size() == 1) return part(item, paths_[0]);
    std::vector<Value> parts;
    for (const Value& path : paths_) parts.push_back(part(item, path));
    return make_list(budget_, ListKind::list, std::move(parts));
  }

 private:
  Value part(const Value& item, const Value& path) const {
    const Value value = path.is(Type::none) ? item : get_path(budget_, item, path);
    if (case_sensitive_ || !value.is(Type::text)) return value;
    budget_.step(static_cast<int64_t>(value.text().size() / 4));
    return make_text(budget_, lower(value.text()));
  }

  Budget& budget_;
  bool case_sensitive_;
  std::vector<Value> paths_;
};

// As in Python, which compares one-element lists of the keys: keys that are equal need no order.
bool key_before(Budget& budget, const Value& a, const Value& b) { return !equal(budget, a, b) && less(budget, a, b); }

std::vector<Value> sorted(Budget& budget, const std::vector<Value>& items, const std::vector<Value>& keys,
                          bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? key_before(budget, keys[b], keys[a]) : key_before(budget, keys[a], keys[b]);
  });
  std::vector<Value> result;
  result.reserve(items.size());
  for (const size_t i : order) result.push_back(items[i]);
  return result;
}

Value sort(const FilterCall& call) {
  const auto bound = call.bind({"reverse", "case_sensitive", "attribute"});
  const SortKey key(call.budget, bound[2], flag_argument(bound[1], false), true);
  const ListRef list = iterate(call.budget, call.value);
  std::vector<Value> keys;
  for (const Value& item : list->items) keys.push_back(key.of(item));
  return make_list(call.budget, ListKind::list, sorted(call.budget, list->items, keys, flag_argument(bound[0], false)));
}

Value dictsort(const FilterCall& call) {
  const auto bound = call.bind({"case_sensitive", "by", "reverse"});
  if (!call.value.is(Type::dict)) fail(fmt::format("dictsort of a {}", type_name(call.value)));
  const std::string by = bound[1] == nullptr ? "key" : text_argument("dictsort", bound[1]);
  if (by != "key" && by != "value") fail("dictsort by neither 'key' nor 'value'");
  const SortKey key(call.budget, nullptr, flag_argument(bound[0], false), false);
  std::vector<Value> items, keys;
  for (const auto& [name, value] : call.value.dict().entries()) {
    items.push_back(make_list(call.budget, ListKind::tuple, {name, value}));
    keys.push_back(key.of(by == "key" ? name : value));
  }
  return make_list(call.budget, ListKind::list, sorted(call.budget, items, keys, flag_argument(bound[2], false)));
}

Value unique(const FilterCall& call) {
  const auto bound = call.bind({"case_sensitive", "attribute"});
  const SortKey key(call.budget, bound[1], flag_argument(bound[0], false), false);
  std::set<Value, decltype(&key_less)> seen(&key_less);
  std::vector<Value> kept;
  const ListRef list = iterate(call.budget, call.value);
  for (const Value& item : list->items) {
    call.budget.step(4);
    const Value item_key = key.of(item);
    if (!is_key(item_key)) refuse(fmt::format("the filter unique of a {}", type_name(item_key)));
    if (seen.insert(item_key).second) kept.push_back(item);
  }
  return make_list(call.budget, ListKind::generator, std::move(kept));
}

Value extreme(const FilterCall& call, bool largest) {
  const auto bound = call.bind({"case_sensitive", "attribute"});
  const SortKey key(call.budget, bound[1], flag_argument(bound[0], false), false);
  const ListRef list = iterate(call.budget, call.value);
  if (list->items.empty()) return make_undefined(call.budget, "an empty list has no smallest or largest item");
  Value best = list->items[0], best_key = key.of(best);
  for (size_t i = 1; i < list->items.size(); ++i) {
    const Value item_key = key.of(list->items[i]);
    if (largest ? !less(call.budget, best_key, item_key) : !less(call.budget, item_key, best_key)) continue;
    best = list->items[i];
    best_key = item_key;
  }
  return best;
}

Value sum(const FilterCall& call) {
  const auto bound = call.bind({"attribute", "start"});
  Value total = bound[1] == nullptr ? Value(int64_t{0}) : *bound[1];
  if (total.is(Type::text)) fail("sum that starts with a text");
  const ListRef list = iterate(call.budget, call.value);
  for (const Value& item : list->items) {
    call.budget.step();
    const bool plain = bound[0] == nullptr || bound[0]->is(Type::none);
    total = arithmetic(call.budget, Operator::add, total, plain ? item : get_path(call.budget, item, *bound[0]));
  }
  return total;
}

Value items_filter(const FilterCall& call) {
  call.bind({});
  std::vector<Value> items;
  if (!call.value.is(Type::undefined)) {
    if (!call.value.is(Type::dict)) fail(fmt::format("items of a {}", type_name(call.value)));
    for (const auto& [key, value] : call.value.dict().entries())
      items.push_back(make_list(call.budget, ListKind::tuple, {key, value}));
  }
  return make_list(call.budget, ListKind::generator, std::move(items));
}

constexpr Filter kFilters[] = {
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items_filter},
    {"join", join},
    {"last", last},
    {"length", length_filter},
    {"list", list_filter},
    {"max", [](const FilterCall& call) { return extreme(call, true); }},
    {"min", [](const FilterCall& call) { return extreme(call, false); }},
    {"reverse", reverse},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const Filter> sequence_filters() { return kFilters; }

}  // namespace headroom::jinja
