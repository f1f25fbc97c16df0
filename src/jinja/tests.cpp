#include "jinja/tests.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/operators.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

// A test of this value: its name for messages, and its arguments.
struct Call {
  Budget& budget;
  std::string_view name;
  const Value& value;
  const Arguments& arguments;

  const Value& only() const { return *arguments.bind(name, {""}, 1)[0]; }
  void none() const { arguments.bind(name, {}); }
};

template <Operator op>
bool compared(const Call& call) {
  return compare(call.budget, op, call.value, call.only());
}

bool has_type(const Call& call, Type type) {
  call.none();
  return call.value.is(type);
}

bool is_constant(const Call& call, bool constant) {
  call.none();
  return call.value.is(Type::boolean) && call.value.boolean() == constant;
}

int64_t rest(const Call& call, const Value& divisor) {
  const Value remainder = arithmetic(call.budget, Operator::modulo, call.value, divisor);
  if (!remainder.is_integer()) return remainder.number() == 0 ? 0 : remainder.number() == 1 ? 1 : 2;
  return remainder.integer();
}

int64_t rest_of_two(const Call& call) {
  call.none();
  return rest(call, Value(int64_t{2}));
}

bool is_sequence(const Call& call) {
  call.none();
  if (call.value.is(Type::list)) return call.value.list().kind <= ListKind::range;
  return call.value.is(Type::text) || call.value.is(Type::dict) || call.value.is(Type::undefined);
}

bool has_case(const Call& call, bool wants_upper) {
  call.none();
  if (!call.value.is(Type::text)) refuse(fmt::format("the test '{}' of a {}", call.name, type_name(call.value)));
  const std::string& text = call.value.text();
  if (!is_ascii(text)) refuse(fmt::format("the test '{}' of a text beyond ASCII", call.name));
  call.budget.touch(text.size());
  const bool any_upper = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool any_lower = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return wants_upper ? any_upper && !any_lower : any_lower && !any_upper;
}

bool is_same(const Call& call) {
  const Value& other = call.only();
  const auto simple = [](const Value& v) { return v.is(Type::none) || v.is(Type::boolean); };
  if (!simple(call.value) && !simple(other)) refuse("the test 'sameas' of other values than true, false and none");
  if (call.value.type() != other.type()) return false;
  return call.value.is(Type::none) || call.value.boolean() == other.boolean();
}

struct Test {
  std::string_view name;
  bool (*run)(const Call&);
};

constexpr Test kTests[] = {
    {"!=", compared<Operator::not_equal>},
    {"<", compared<Operator::less>},
    {"<=", compared<Operator::less_equal>},
    {"==", compared<Operator::equal>},
    {">", compared<Operator::greater>},
    {">=", compared<Operator::greater_equal>},
    {"boolean", [](const Call& call) { return has_type(call, Type::boolean); }},
    {"callable", [](const Call& call) { return has_type(call, Type::callable) || has_type(call, Type::undefined); }},
    {"defined", [](const Call& call) { return !has_type(call, Type::undefined); }},
    {"divisibleby",
     [](const Call& call) { return rest(call, *call.arguments.bind("divisibleby", {"num"}, 1)[0]) == 0; }},
    {"eq", compared<Operator::equal>},
    {"equalto", compared<Operator::equal>},
    {"even", [](const Call& call) { return rest_of_two(call) == 0; }},
    {"false", [](const Call& call) { return is_constant(call, false); }},
    {"float", [](const Call& call) { return has_type(call, Type::real); }},
    {"ge", compared<Operator::greater_equal>},
    {"greaterthan", compared<Operator::greater>},
    {"gt", compared<Operator::greater>},
    {"in", compared<Operator::in>},
    {"integer", [](const Call& call) { return has_type(call, Type::integer); }},
    {"iterable", [](const Call& call) { return call.none(), is_iterable(call.value); }},
    {"le", compared<Operator::less_equal>},
    {"lessthan", compared<Operator::less>},
    {"lower", [](const Call& call) { return has_case(call, false); }},
    {"lt", compared<Operator::less>},
    {"mapping", [](const Call& call) { return has_type(call, Type::dict); }},
    {"ne", compared<Operator::not_equal>},
    {"none", [](const Call& call) { return has_type(call, Type::none); }},
    {"number", [](const Call& call) { return call.none(), call.value.is_number(); }},
    {"odd", [](const Call& call) { return rest_of_two(call) == 1; }},
    {"sameas", is_same},
    {"sequence", is_sequence},
    {"string", [](const Call& call) { return has_type(call, Type::text); }},
    {"true", [](const Call& call) { return is_constant(call, true); }},
    {"undefined", [](const Call& call) { return has_type(call, Type::undefined); }},
    {"upper", [](const Call& call) { return has_case(call, true); }},
};

const Test* find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests), [&](const Test& t) { return t.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

bool is_test(std::string_view name) { return find_test(name) != nullptr; }

bool run_test(Budget& budget, std::string_view name, const Value& value, const Arguments& arguments) {
  const Test* test = find_test(name);
  if (test == nullptr) refuse(fmt::format("the test {}", name));
  return test->run({budget, name, value, arguments});
}

}  // namespace headroom::jinja
