#include "jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/loop.h"
#include "jinja/print.h"
#include "jinja/problem.h"
#include "jinja/replace.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

bool is_array(const Value& value, ListKind kind) { return value.is(Type::list) && value.list().kind == kind; }

bool equal_lists(Budget& budget, const List& a, const List& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(budget, a.items[i], b.items[i])) return false;
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    budget.step();
    const Value* other = b.find(key);
    if (other == nullptr || !equal(budget, value, *other)) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  return a.number() == b.number();
}

bool less_lists(Budget& budget, const List& a, const List& b) {
  for (size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i)
    if (!equal(budget, a.items[i], b.items[i])) return less(budget, a.items[i], b.items[i]);
  return a.items.size() < b.items.size();
}

}  // namespace

void require_defined(const Value& value) {
  if (value.is(Type::undefined)) fail(value.why());
}

bool truth(const Value& value) {
  switch (value.type()) {
    case Type::none:
    case Type::undefined:
      return false;
    case Type::boolean:
      return value.boolean();
    case Type::integer:
    case Type::real:
      return value.number() != 0;
    case Type::text:
      return !value.text().empty();
    case Type::list:
      return value.list().kind == ListKind::generator || !value.list().items.empty();
    case Type::dict:
      return !value.dict().entries().empty();
    case Type::loop:
      return value.loop().whole_length() > 0;
    default:
      return true;
  }
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.same_object(b)) return true;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::undefined:
      return true;
    case Type::text:
      budget.touch(std::min(a.text().size(), b.text().size()));
      return a.text() == b.text();
    case Type::list:
      if (a.list().kind == ListKind::keys || a.list().kind == ListKind::items) refuse("comparing views of dicts");
      if (a.list().kind == ListKind::values || a.list().kind == ListKind::generator) return false;
      return equal_lists(budget, a.list(), b.list());
    case Type::dict:
      return equal_dicts(budget, a.dict(), b.dict());
    case Type::callable:
      if (a.callable().is_method && b.callable().is_method) refuse("comparing methods");
      return a.callable().macro == nullptr && b.callable().macro == nullptr && a.callable().name == b.callable().name;
    default:
      return false;
  }
}

bool less(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number())
    return a.is_integer() && b.is_integer() ? a.integer() < b.integer() : a.number() < b.number();
  if (a.is(Type::text) && b.is(Type::text)) {
    budget.touch(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();
  }
  for (const ListKind kind : {ListKind::list, ListKind::tuple})
    if (is_array(a, kind) && is_array(b, kind)) return less_lists(budget, a.list(), b.list());
  fail(fmt::format("a {} and a {} have no order", type_name(a), type_name(b)));
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is(Type::text)) {
    require_defined(item);
    if (!item.is(Type::text)) fail(fmt::format("'in' looks for a {} in a text", type_name(item)));
    charge_search(budget, container.text(), item.text());
    return find_text(container.text(), item.text()) != std::string::npos;
  }
  if (container.is(Type::dict)) {
    require_hashable(item);
    return container.dict().find(item) != nullptr;
  }
  const ListRef list = iterate(budget, container);
  return std::any_of(list->items.begin(), list->items.end(),
                     [&](const Value& element) { return equal(budget, element, item); });
}

bool compare(Budget& budget, Operator op, const Value& a, const Value& b) {
  const auto undecided = [&] { return a.is(Type::real) || b.is(Type::real); };  // NaN
  switch (op) {
    case Operator::equal:
      return equal(budget, a, b);
    case Operator::not_equal:
      return !equal(budget, a, b);
    case Operator::less:
      return less(budget, a, b);
    case Operator::greater:
      return less(budget, b, a);
    case Operator::less_equal:
      return undecided() && a.is_number() && b.is_number() ? a.number() <= b.number() : !less(budget, b, a);
    case Operator::greater_equal:
      return undecided() && a.is_number() && b.is_number() ? a.number() >= b.number() : !less(budget, a, b);
    case Operator::in:
      return contains(budget, b, a);
    default:
      return !contains(budget, b, a);
  }
}

bool is_iterable(const Value& value) {
  return value.is(Type::text) || value.is(Type::list) || value.is(Type::dict) || value.is(Type::undefined) ||
         value.is(Type::loop);
}

ListRef iterate(Budget& budget, const Value& value) {
  const auto made = [&budget](std::vector<Value> items) {
    return make_list(budget, ListKind::list, std::move(items)).list_ref();
  };
  if (value.is(Type::undefined)) return made({});
  if (value.is(Type::list)) {
    if (value.list().kind != ListKind::generator) return value.list_ref();
    if (std::exchange(value.list().consumed, true)) return made({});
    return value.list_ref();
  }
  std::vector<Value> items;
  if (value.is(Type::dict)) {
    budget.step(static_cast<int64_t>(value.dict().entries().size()));
    for (const auto& entry : value.dict().entries()) items.push_back(entry.first);
  } else if (value.is(Type::text)) {
    const std::string& text = value.text();
    for (size_t at = 0; at < text.size();) {
      budget.step();
      const size_t begin = at;
      next_point(text, at);
      items.push_back(make_text(budget, text.substr(begin, at - begin)));
    }
  } else {
    if (value.is(Type::loop)) refuse("a loop over 'loop'");
    fail(fmt::format("a {} cannot be iterated over", type_name(value)));
  }
  return made(std::move(items));
}

int64_t length_of(Budget& budget, const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return 0;
    case Type::text:
      budget.touch(value.text().size());
      return static_cast<int64_t>(count_points(value.text()));
    case Type::dict:
      return static_cast<int64_t>(value.dict().entries().size());
    case Type::loop:
      return value.loop().whole_length();
    case Type::list:
      if (value.list().kind != ListKind::generator) return static_cast<int64_t>(value.list().items.size());
      fail("what a filter yields has no length without '|list'");
    default:
      fail(fmt::format("a {} has no length", type_name(value)));
  }
}

std::string escape_html(Budget& budget, std::string_view text) {
  std::string to;
  for (const char c : text) {
    if (to.size() % 4096 < 6) budget.check_text(to.size());
    switch (c) {
      case '&':
        to += "&amp;";
        break;
      case '<':
        to += "&lt;";
        break;
      case '>':
        to += "&gt;";
        break;
      case '\'':
        to += "&#39;";
        break;
      case '"':
        to += "&#34;";
        break;
      default:
        to += c;
    }
  }
  budget.check_text(to.size());
  return to;
}

}  // namespace headroom::jinja
