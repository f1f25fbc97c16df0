#include "jinja/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "jinja/loop.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kTextMethods[] = {
    "capitalize", "count",   "endswith",     "find",         "index",   "isalnum", "isalpha",    "isascii",
    "isdigit",    "islower", "isnumeric",    "isspace",      "isupper", "join",    "lower",      "lstrip",
    "partition",  "replace", "removeprefix", "removesuffix", "rfind",   "rindex",  "rpartition", "rsplit",
    "rstrip",     "split",   "splitlines",   "startswith",   "strip",   "title",   "upper"};
constexpr std::string_view kOtherTextMethods[] = {
    "casefold",    "center",       "encode",    "expandtabs", "format", "ljust",    "format_map", "istitle",
    "isprintable", "isidentifier", "isdecimal", "maketrans",  "rjust",  "swapcase", "translate",  "zfill"};
constexpr std::string_view kListMethods[] = {"count", "index"};
constexpr std::string_view kOtherListMethods[] = {"copy"};
constexpr std::string_view kListChanges[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values", "copy"};
constexpr std::string_view kOtherDictMethods[] = {"fromkeys"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kOtherNumberMembers[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "fromhex", "hex", "imag",
    "is_integer",       "numerator", "real",       "to_bytes"};

bool among(Names names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

// A type's members: methods that are supported, methods that are refused, methods that would change the value.
struct Members {
  Names methods, others, changes;
};

Members members_of(const Value& value) {
  switch (value.type()) {
    case Type::text:
      return {kTextMethods, kOtherTextMethods, {}};
    case Type::list:
      if (value.list().kind == ListKind::list) return {kListMethods, kOtherListMethods, kListChanges};
      if (value.list().kind == ListKind::tuple) return {kListMethods, {}, {}};
      return {};
    case Type::dict:
      return {kDictMethods, kOtherDictMethods, kDictChanges};
    case Type::boolean:
    case Type::integer:
    case Type::real:
      return {{}, kOtherNumberMembers, {}};
    default:
      return {};
  }
}

Value bound_method(Budget& budget, const Value& self, std::string_view name) {
  auto method = std::make_shared<Callable>();
  method->charge = Charge(budget, sizeof(Callable) + 32);
  method->name = std::string(name);
  method->self = self;
  method->is_method = true;
  return Value(std::shared_ptr<const Callable>(std::move(method)));
}

// Python's getattr(), made safe; nullopt if Python finds nothing.
std::optional<Value> python_attribute(Budget& budget, const Value& value, std::string_view name) {
  if (value.is(Type::loop)) return loop_attribute(budget, value, name);
  if (value.is(Type::name_space)) {
    const auto found = value.name_space().members.find(name);
    return found == value.name_space().members.end() ? std::nullopt : std::optional<Value>(found->second);
  }
  if (value.is(Type::callable)) refuse(fmt::format("the attribute '{}' of a function", name));
  const Members members = members_of(value);
  if (among(members.methods, name)) return bound_method(budget, value, name);
  if (among(members.others, name)) refuse(fmt::format("the method '{}' of a {}", name, type_name(value)));
  if (among(members.changes, name))
    return make_undefined(budget, fmt::format("the method '{}' would change a {}", name, type_name(value)));
  return std::nullopt;
}

// Python's value[item]; nullopt if Python raises a TypeError or LookupError.
std::optional<Value> python_item(Budget& budget, const Value& value, const Value& item) {
  if (value.is(Type::dict)) {
    const Value* found = value.dict().find(item);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (!item.is_integer()) return std::nullopt;
  int64_t index = item.integer();
  if (value.is(Type::text)) {
    const std::string& text = value.text();
    budget.touch(text.size());
    const auto length = static_cast<int64_t>(count_points(text));
    if (index < 0) index += length;
    if (index < 0 || index >= length) return std::nullopt;
    const size_t begin = byte_of_point(text, static_cast<size_t>(index));
    size_t end = begin;
    next_point(text, end);
    return make_text(budget, text.substr(begin, end - begin));
  }
  if (!value.is(Type::list) || value.list().kind > ListKind::range) return std::nullopt;
  const std::vector<Value>& items = value.list().items;
  if (index < 0) index += static_cast<int64_t>(items.size());
  if (index < 0 || index >= static_cast<int64_t>(items.size())) return std::nullopt;
  return items[static_cast<size_t>(index)];
}

Value missing(Budget& budget, const Value& value, std::string_view name) {
  return make_undefined(budget, fmt::format("a {} has no '{}'", type_name(value), name.substr(0, 100)));
}

}  // namespace

Value get_attribute(Budget& budget, const Value& value, std::string_view name) {
  if (value.is(Type::undefined)) fail(value.why());
  const bool internal = name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__";
  if (internal) return make_undefined(budget, fmt::format("the attribute '{}' is not safe", name));
  if (const auto found = python_attribute(budget, value, name)) return *found;
  if (value.is(Type::dict))
    if (const Value* found = value.dict().find(name)) return *found;
  return missing(budget, value, name);
}

Value get_item(Budget& budget, const Value& value, const Value& item) {
  if (value.is(Type::undefined)) fail(value.why());
  if (const auto found = python_item(budget, value, item)) return *found;
  if (!item.is(Type::text)) {
    const std::string shown = item.is_integer() ? std::to_string(item.integer()) : std::string(type_name(item));
    return missing(budget, value, shown);
  }
  if (const auto found = python_attribute(budget, value, item.text())) return *found;
  return missing(budget, value, item.text());
}

Value get_path(Budget& budget, const Value& value, const Value& path) {
  if (!path.is(Type::text)) return get_item(budget, value, path);
  Value reached = value;
  for (const std::string_view part : split(path.text(), ".", -1, false)) {
    budget.step();
    int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool digits = parsed.ec == std::errc() && parsed.ptr == part.data() + part.size() && part[0] != '-';
    reached = get_item(budget, reached, digits ? Value(index) : constant_text(std::string(part)));
  }
  return reached;
}

Value call_method(Budget& budget, const Value& self, std::string_view name, const Arguments& arguments) {
  if (self.is(Type::text)) return call_text_method(budget, self, name, arguments);
  if (self.is(Type::loop)) {
    if (!arguments.named.empty()) fail("loop.cycle() with a named argument");
    return loop_cycle(self, arguments.positional);
  }
  return call_container_method(budget, self, name, arguments);
}

}  // namespace headroom::jinja
