// The methods of texts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jinja/attributes.h"
#include "jinja/operators.h"
#include "jinja/problem.h"
#include "jinja/replace.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

// A method call: the text, the method's name for messages, and the arguments.
struct Call {
  Budget& budget;
  const std::string& text;
  std::string_view name;
  const Arguments& arguments;

  Value made(std::string bytes) const { return make_text(budget, std::move(bytes)); }
  // The only argument.
  const std::string& only() const { return text_argument(name, arguments.bind(name, {""}, 1)[0]); }
  void none() const { arguments.bind(name, {}); }
};

// The number of occurrences, without overlaps; `wanted` is not empty.
uint64_t occurrences(std::string_view text, std::string_view wanted) {
  uint64_t count = 0;
  for (size_t at = find_text(text, wanted); at != text.npos; at = find_text(text, wanted, at + wanted.size())) ++count;
  return count;
}

Value strip_call(const Call& call, Side side) {
  return call.made(strip_argument(call.budget, call.text, side, call.arguments.bind(call.name, {""})[0]));
}

Value split_call(const Call& call, bool from_right) {
  const auto bound = call.arguments.bind(call.name, {"sep", "maxsplit"});
  const int64_t most = integer_argument(call.name, bound[1], -1);
  call.budget.touch(call.text.size());
  if (bound[0] == nullptr || bound[0]->is(Type::none)) {
    const auto gaps =
        std::count_if(call.text.begin(), call.text.end(), [](unsigned char c) { return c <= ' ' || c >= 0x80; });
    const Charge room = room_for_parts(call.budget, static_cast<uint64_t>(gaps) + 1);
    return text_list(call.budget, ListKind::list, split_space(call.text, most, from_right));
  }
  const std::string& separator = text_argument(call.name, bound[0]);
  if (separator.empty()) fail(fmt::format("{} at an empty text", call.name));
  charge_search(call.budget, call.text, separator, from_right);
  const Charge room = room_for_parts(call.budget, occurrences(call.text, separator) + 1);
  return text_list(call.budget, ListKind::list, split(call.text, separator, most, from_right));
}

Value split_lines_call(const Call& call) {
  const auto bound = call.arguments.bind(call.name, {"keepends"});
  call.budget.touch(call.text.size());
  const Charge room = room_for_lines(call.budget, call.text);
  return text_list(call.budget, ListKind::list, split_lines(call.text, flag_argument(bound[0], false)));
}

Value partition_call(const Call& call, bool from_right) {
  const std::string& separator = call.only();
  if (separator.empty()) fail(fmt::format("{} at an empty text", call.name));
  charge_search(call.budget, call.text, separator, from_right);
  const size_t at = from_right ? call.text.rfind(separator) : find_text(call.text, separator);
  const std::string_view text = call.text;
  if (at != std::string::npos)
    return text_list(call.budget, ListKind::tuple, {text.substr(0, at), separator, text.substr(at + separator.size())});
  if (from_right) return text_list(call.budget, ListKind::tuple, {"", "", text});
  return text_list(call.budget, ListKind::tuple, {text, "", ""});
}

// startswith and endswith: a text, or a tuple of which one must match.
Value edge_call(const Call& call, bool at_end) {
  const auto fits = [&](const std::string& edge) {
    call.budget.touch(edge.size());
    if (edge.size() > call.text.size()) return false;
    return call.text.compare(at_end ? call.text.size() - edge.size() : 0, edge.size(), edge) == 0;
  };
  const Value& wanted = *call.arguments.bind(call.name, {""}, 1)[0];
  if (!wanted.is(Type::list) || wanted.list().kind != ListKind::tuple)
    return Value(fits(text_argument(call.name, &wanted)));
  bool any = false;
  for (const Value& edge : wanted.list().items) any = fits(text_argument(call.name, &edge)) || any;
  return Value(any);
}

// The index, in characters, of the argument in the text; -1 if it is not there.
int64_t position(const Call& call, bool from_right) {
  const std::string& wanted = call.only();
  charge_search(call.budget, call.text, wanted, from_right);
  const size_t at = from_right ? call.text.rfind(wanted) : find_text(call.text, wanted);
  if (at == std::string::npos) return -1;
  return static_cast<int64_t>(count_points(std::string_view(call.text).substr(0, at)));
}

Value index_call(const Call& call, bool from_right) {
  const int64_t at = position(call, from_right);
  if (at < 0) fail(fmt::format("{}: the text is not there", call.name));
  return Value(at);
}

Value count_call(const Call& call) {
  const std::string& wanted = call.only();
  charge_search(call.budget, call.text, wanted);
  if (wanted.empty()) return Value(static_cast<int64_t>(count_points(call.text)) + 1);
  return Value(static_cast<int64_t>(occurrences(call.text, wanted)));
}

Value join_call(const Call& call) {
  const ListRef list = iterate(call.budget, *call.arguments.bind(call.name, {""}, 1)[0]);
  std::string joined;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const std::string& part = text_argument(call.name, &list->items[i]);
    if (i > 0) joined += call.text;
    call.budget.step();
    if (joined.size() + part.size() + call.text.size() > static_cast<size_t>(call.budget.limits().text_bytes))
      call.budget.check_text(joined.size() + part.size() + call.text.size());
    joined += part;
  }
  return call.made(std::move(joined));
}

Value replace_call(const Call& call) {
  const auto bound = call.arguments.bind(call.name, {"", "", "count"}, 2);
  return call.made(replace(call.budget, call.text, text_argument(call.name, bound[0]),
                           text_argument(call.name, bound[1]), integer_argument(call.name, bound[2], -1)));
}

Value remove_call(const Call& call, bool at_end) {
  const std::string& edge = call.only();
  const std::string_view text = call.text;
  const bool fits =
      text.size() >= edge.size() && text.substr(at_end ? text.size() - edge.size() : 0, edge.size()) == edge;
  if (!fits) return call.made(call.text);
  return call.made(std::string(at_end ? text.substr(0, text.size() - edge.size()) : text.substr(edge.size())));
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }

Value class_call(const Call& call) {
  call.none();
  const std::string& text = call.text;
  call.budget.touch(text.size());
  if (call.name == "isascii") return Value(is_ascii(text));
  if (call.name == "isspace") return Value(!text.empty() && strip(text, Side::both).empty());
  if (!is_ascii(text)) refuse(fmt::format("the method '{}' of a text beyond ASCII", call.name));
  const auto all = [&](auto is) { return Value(!text.empty() && std::all_of(text.begin(), text.end(), is)); };
  const auto any = [&](auto is) { return std::any_of(text.begin(), text.end(), is); };
  if (call.name == "islower") return Value(any(is_lower) && !any(is_upper));
  if (call.name == "isupper") return Value(any(is_upper) && !any(is_lower));
  if (call.name == "isalpha") return all(is_letter);
  if (call.name == "isalnum") return all([](char c) { return is_letter(c) || is_digit(c); });
  return all(is_digit);  // isdigit, isnumeric
}

Value case_call(const Call& call, std::string (*change)(std::string_view)) {
  call.none();
  call.budget.check_text(call.text.size());
  call.budget.step(static_cast<int64_t>(call.text.size() / 4));
  return call.made(change(call.text));
}

struct Method {
  std::string_view name;
  Value (*run)(const Call&);
};

constexpr Method kMethods[] = {
    {"capitalize", [](const Call& call) { return case_call(call, capitalize); }},
    {"count", count_call},
    {"endswith", [](const Call& call) { return edge_call(call, true); }},
    {"find", [](const Call& call) { return Value(position(call, false)); }},
    {"index", [](const Call& call) { return index_call(call, false); }},
    {"join", join_call},
    {"lower", [](const Call& call) { return case_call(call, lower); }},
    {"lstrip", [](const Call& call) { return strip_call(call, Side::left); }},
    {"partition", [](const Call& call) { return partition_call(call, false); }},
    {"removeprefix", [](const Call& call) { return remove_call(call, false); }},
    {"removesuffix", [](const Call& call) { return remove_call(call, true); }},
    {"replace", replace_call},
    {"rfind", [](const Call& call) { return Value(position(call, true)); }},
    {"rindex", [](const Call& call) { return index_call(call, true); }},
    {"rpartition", [](const Call& call) { return partition_call(call, true); }},
    {"rsplit", [](const Call& call) { return split_call(call, true); }},
    {"rstrip", [](const Call& call) { return strip_call(call, Side::right); }},
    {"split", [](const Call& call) { return split_call(call, false); }},
    {"splitlines", split_lines_call},
    {"startswith", [](const Call& call) { return edge_call(call, false); }},
    {"strip", [](const Call& call) { return strip_call(call, Side::both); }},
    {"title", [](const Call& call) { return case_call(call, title); }},
    {"upper", [](const Call& call) { return case_call(call, upper); }},
};

}  // namespace

Value call_text_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments) {
  if (self.text_ref()->markup) refuse(fmt::format("the method '{}' of a text marked as safe", name));
  const Call call{budget, self.text(), name, arguments};
  for (const Method& method : kMethods)
    if (method.name == name) return method.run(call);
  return class_call(call);
}

}  // namespace headroom::jinja
