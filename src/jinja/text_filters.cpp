// Filters of texts: trim, upper, replace, indent, tojson ...
#include <fmt/format.h>

#include <algorithm>

#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/problem.h"
#include "jinja/replace.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

// The value as a text; refuses a text that is marked as safe, because the filter would lose the mark.
std::string plain_text(const FilterCall& call, const Value& value) {
  if (value.is(Type::text) && value.text_ref()->markup)
    refuse(fmt::format("the filter '{}' of a text marked as safe", call.name));
  return to_text(call.budget, value);
}

Value changed(const FilterCall& call, std::string (*change)(std::string_view)) {
  call.bind({});
  const std::string text = plain_text(call, call.value);
  call.budget.step(static_cast<int64_t>(text.size() / 4));
  return make_text(call.budget, change(text));
}

// Jinja's title: letters at the beginning and after white space, - ( { [ < are upper case, all others lower case.
std::string title_words(std::string_view text) {
  const auto splits = [](char32_t c) {
    return is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  std::string titled;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    size_t next = at;
    const bool split = splits(next_point(text, next));
    while (at < text.size()) {
      next = at;
      if (splits(next_point(text, next)) != split) break;
      at = next;
    }
    size_t rest = begin;
    next_point(text, rest);
    titled += upper(text.substr(begin, rest - begin)) + lower(text.substr(rest, at - rest));
  }
  return titled;
}

Value trim(const FilterCall& call) {
  const auto bound = call.bind({"chars"});
  return make_text(call.budget, strip_argument(call.budget, plain_text(call, call.value), Side::both, bound[0]));
}

Value replace_filter(const FilterCall& call) {
  const auto bound = call.bind({"old", "new", "count"}, 2);
  const std::string text = to_text(call.budget, call.value);
  const int64_t most = bound[2] == nullptr || bound[2]->is(Type::none) ? -1 : integer_argument("replace", bound[2], -1);
  return make_text(call.budget,
                   replace(call.budget, text, to_text(call.budget, *bound[0]), to_text(call.budget, *bound[1]), most));
}

Value indent(const FilterCall& call) {
  const auto bound = call.bind({"width", "first", "blank"});
  if (!call.value.is(Type::text)) fail(fmt::format("indent of a {}", type_name(call.value)));
  const std::string text = plain_text(call, call.value) + "\n";
  std::string indention;
  if (bound[0] != nullptr && bound[0]->is(Type::text)) {
    indention = bound[0]->text();
  } else {
    const int64_t width = integer_argument("indent", bound[0], 4);
    call.budget.check_text(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
    indention.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = flag_argument(bound[2], false);
  const Charge room = room_for_lines(call.budget, text);
  std::string indented = flag_argument(bound[1], false) ? indention : "";
  for (bool first = true; const std::string_view line : split_lines(text, false)) {
    if (!first) indented += '\n';
    if (!first && (blank || !line.empty())) indented += indention;
    first = false;
    call.budget.check_text(indented.size() / 64 + line.size());
    if (indented.size() + line.size() > static_cast<size_t>(call.budget.limits().text_bytes))
      call.budget.check_text(indented.size() + line.size());
    indented += line;
  }
  return make_text(call.budget, std::move(indented));
}

Value string_filter(const FilterCall& call) {
  call.bind({});
  return call.value.is(Type::text) ? call.value : make_text(call.budget, to_text(call.budget, call.value));
}

Value escape(const FilterCall& call) {
  call.bind({});
  if (call.value.is(Type::text) && call.value.text_ref()->markup) return call.value;
  return make_text(call.budget, escape_html(call.budget, to_text(call.budget, call.value)), true);
}

Value safe(const FilterCall& call) {
  call.bind({});
  return make_text(call.budget, to_text(call.budget, call.value), true);
}

void set_separators(const Value& separators, JsonStyle& style) {
  if (!separators.is(Type::list) || separators.list().items.size() != 2)
    fail("tojson with separators that are not a pair");
  style.item_separator = text_argument("tojson", &separators.list().items[0]);
  style.key_separator = text_argument("tojson", &separators.list().items[1]);
}

Value tojson(const FilterCall& call) {
  const auto bound = call.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = flag_argument(bound[0], false);
  style.sort_keys = flag_argument(bound[3], false);
  if (bound[1] != nullptr && !bound[1]->is(Type::none)) {
    style.pretty = true;
    style.item_separator = ",";
    if (bound[1]->is(Type::text)) {
      style.indent = bound[1]->text();
    } else {
      const int64_t width = integer_argument("tojson", bound[1], 0);
      call.budget.check_text(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (bound[2] != nullptr && !bound[2]->is(Type::none)) set_separators(*bound[2], style);
  return make_text(call.budget, to_json(call.budget, call.value, style));
}

constexpr Filter kFilters[] = {
    {"capitalize", [](const FilterCall& call) { return changed(call, capitalize); }},
    {"e", escape},
    {"escape", escape},
    {"indent", indent},
    {"lower", [](const FilterCall& call) { return changed(call, lower); }},
    {"replace", replace_filter},
    {"safe", safe},
    {"string", string_filter},
    {"title", [](const FilterCall& call) { return changed(call, title_words); }},
    {"tojson", tojson},
    {"trim", trim},
    {"upper", [](const FilterCall& call) { return changed(call, upper); }},
};

}  // namespace

std::span<const Filter> text_filters() { return kFilters; }

}  // namespace headroom::jinja
