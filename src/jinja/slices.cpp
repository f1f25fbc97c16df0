#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "jinja/attributes.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

struct Bounds {
  int64_t first, last, step;
};

bool is_bound(const Value& value) { return value.is(Type::none) || value.is_integer(); }

int64_t clamped(const Value& value, int64_t otherwise, int64_t length, int64_t least, int64_t most) {
  if (value.is(Type::none)) return otherwise;
  const int64_t index = value.integer();
  return std::clamp(index < 0 ? (index < -length ? least : index + length) : index, least, most);
}

// The bounds that Python's slice.indices() gives.
Bounds resolve(const Value& first, const Value& last, const Value& step, int64_t length) {
  Bounds bounds{0, 0, 1};
  if (!step.is(Type::none)) bounds.step = std::clamp(step.integer(), -INT64_MAX, INT64_MAX);
  if (bounds.step == 0) fail("a slice with the step 0");
  const bool back = bounds.step < 0;
  const int64_t least = back ? -1 : 0, most = back ? length - 1 : length;
  bounds.first = clamped(first, back ? most : least, length, least, most);
  bounds.last = clamped(last, back ? least : most, length, least, most);
  return bounds;
}

// The positions of the slice, in its order.
template <typename Take>
void visit(const Bounds& bounds, Take take) {
  int64_t at = bounds.first;
  while (bounds.step > 0 ? at < bounds.last : at > bounds.last) {
    take(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, bounds.step, &at)) break;
  }
}

Value slice_text(Budget& budget, const std::string& text, const Value& first, const Value& last, const Value& step) {
  budget.check_text(text.size());
  const Bounds bounds = resolve(first, last, step, static_cast<int64_t>(count_points(text)));
  if (bounds.step == 1) {
    if (bounds.first >= bounds.last) return make_text(budget, {});
    const size_t begin = byte_of_point(text, static_cast<size_t>(bounds.first));
    const size_t bytes =
        byte_of_point(std::string_view(text).substr(begin), static_cast<size_t>(bounds.last - bounds.first));
    return make_text(budget, text.substr(begin, bytes));
  }
  const Charge scratch(budget, static_cast<int64_t>(text.size() * 2 * sizeof(std::string_view)));
  const std::vector<std::string_view> points = split_points(text);
  std::string taken;
  visit(bounds, [&](size_t i) { taken += points[i]; });
  return make_text(budget, std::move(taken));
}

}  // namespace

Value get_slice(Budget& budget, const Value& value, const Value& first, const Value& last, const Value& step) {
  if (value.is(Type::undefined)) fail(value.why());
  const bool array = value.is(Type::list) && value.list().kind <= ListKind::range;
  if ((!value.is(Type::text) && !array) || !is_bound(first) || !is_bound(last) || !is_bound(step))
    fail(fmt::format("a {} has no such slice", type_name(value)));
  if (value.is(Type::text)) {
    if (value.text_ref()->markup) refuse("a slice of a text marked as safe");
    return slice_text(budget, value.text(), first, last, step);
  }
  const List& list = value.list();
  std::vector<Value> items;
  visit(resolve(first, last, step, static_cast<int64_t>(list.items.size())), [&](size_t i) {
    budget.step();
    items.push_back(list.items[i]);
  });
  return make_list(budget, list.kind, std::move(items));
}

}  // namespace headroom::jinja
