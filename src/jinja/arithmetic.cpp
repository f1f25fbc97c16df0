#include <fmt/format.h>

#include <cmath>

#include "jinja/operators.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

[[noreturn]] void overflow() { refuse("an integer beyond 64 bits"); }

std::string_view sign_of(Operator op) {
  constexpr std::string_view signs[] = {"+", "-", "*", "/", "//", "%", "**"};
  return signs[static_cast<int>(op)];
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (a == INT64_MIN && b == -1) overflow();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floor_rest(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

Value on_integers(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      return Value(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      return Value(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      return Value(result);
    case Operator::power:
      if (b >= 0) return Value(integer_power(a, b));
      if (a == 0) fail("zero to a negative power");
      return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    default:
      break;
  }
  if (b == 0) fail("a division by zero");
  if (op == Operator::divide) return Value(static_cast<double>(a) / static_cast<double>(b));
  return Value(op == Operator::modulo ? floor_rest(a, b) : floor_quotient(a, b));
}

double real_rest(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value on_reals(Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return Value(a + b);
    case Operator::subtract:
      return Value(a - b);
    case Operator::multiply:
      return Value(a * b);
    case Operator::power: {
      if (a == 0 && b < 0) fail("zero to a negative power");
      const double power = std::pow(a, b);
      if ((std::isnan(power) && !std::isnan(a) && !std::isnan(b)) ||
          (std::isinf(power) && std::isfinite(a) && std::isfinite(b)))
        fail("a power that is not a float");
      return Value(power);
    }
    default:
      break;
  }
  if (b == 0) fail("a division by zero");
  if (op == Operator::divide) return Value(a / b);
  if (op == Operator::modulo) return Value(real_rest(a, b));
  const double rest = real_rest(a, b);
  return Value(std::floor((a - rest) / b + 0.5));
}

Value add_texts(Budget& budget, const Value& a, const Value& b) {
  const bool markup = a.text_ref()->markup || b.text_ref()->markup;
  budget.check_text(a.text().size() + b.text().size());
  if (!markup) return make_text(budget, a.text() + b.text());
  const auto safe = [&budget](const Value& v) {
    return v.text_ref()->markup ? v.text() : escape_html(budget, v.text());
  };
  return make_text(budget, safe(a) + safe(b), true);
}

Value add_lists(Budget& budget, const List& a, const List& b) {
  budget.step(static_cast<int64_t>((a.items.size() + b.items.size()) / 4));
  std::vector<Value> items;
  items.reserve(a.items.size() + b.items.size());
  items.insert(items.end(), a.items.begin(), a.items.end());
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_list(budget, a.kind, std::move(items));
}

bool is_array(const Value& value) {
  return value.is(Type::list) && (value.list().kind == ListKind::list || value.list().kind == ListKind::tuple);
}

Value repeat(Budget& budget, const Value& what, int64_t times) {
  const uint64_t count = times < 0 ? 0 : static_cast<uint64_t>(times);
  if (what.is(Type::text)) {
    if (what.text_ref()->markup) refuse("'*' with a text marked as safe");
    const std::string& text = what.text();
    if (!text.empty() && count > static_cast<uint64_t>(budget.limits().text_bytes)) budget.check_text(count);
    budget.check_text(text.size() * count);
    std::string repeated;
    repeated.reserve(text.size() * count);
    if (!text.empty())
      for (uint64_t i = 0; i < count; ++i) repeated += text;
    return make_text(budget, std::move(repeated));
  }
  const std::vector<Value>& items = what.list().items;
  if (!items.empty() && count > static_cast<uint64_t>(budget.limits().steps)) budget.step(budget.limits().steps + 1);
  budget.step(static_cast<int64_t>(items.size() * (items.empty() ? 0 : count)));
  std::vector<Value> repeated;
  if (!items.empty())
    for (uint64_t i = 0; i < count; ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  return make_list(budget, what.list().kind, std::move(repeated));
}

}  // namespace

Value arithmetic(Budget& budget, Operator op, const Value& a, const Value& b) {
  if (op == Operator::modulo && a.is(Type::text)) refuse("'%' with a text");
  require_defined(a);
  require_defined(b);
  if (a.is_integer() && b.is_integer()) return on_integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return on_reals(op, a.number(), b.number());
  if (op == Operator::add && a.is(Type::text) && b.is(Type::text)) return add_texts(budget, a, b);
  if (op == Operator::add && is_array(a) && is_array(b) && a.list().kind == b.list().kind)
    return add_lists(budget, a.list(), b.list());
  if (op == Operator::multiply) {
    if ((a.is(Type::text) || is_array(a)) && b.is_integer()) return repeat(budget, a, b.integer());
    if ((b.is(Type::text) || is_array(b)) && a.is_integer()) return repeat(budget, b, a.integer());
  }
  fail(fmt::format("'{}' between a {} and a {}", sign_of(op), type_name(a), type_name(b)));
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Type::real)) return Value(-value.number());
  if (!value.is_integer()) fail(fmt::format("'-' before a {}", type_name(value)));
  if (value.integer() == INT64_MIN) overflow();
  return Value(-value.integer());
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is(Type::real)) return value;
  if (!value.is_integer()) fail(fmt::format("'+' before a {}", type_name(value)));
  return Value(value.integer());
}

}  // namespace headroom::jinja
