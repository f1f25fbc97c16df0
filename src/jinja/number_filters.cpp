// Filters of numbers: int, float, round, abs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number's text without white space around it and underscores between its digits; nullopt if there are any elsewhere.
std::optional<std::string> digits_of(std::string_view text) {
  const std::string_view stripped = strip(text, Side::both);
  std::string digits;
  for (size_t i = 0; i < stripped.size(); ++i) {
    if (stripped[i] != '_') {
      digits += stripped[i];
    } else if (i == 0 || i + 1 == stripped.size() || !is_digit(stripped[i - 1]) || !is_digit(stripped[i + 1])) {
      return std::nullopt;
    }
  }
  if (!digits.empty() && digits[0] == '+') digits.erase(0, 1);
  if (digits.empty() || digits[0] == '+' || digits.size() > 1000) return std::nullopt;
  return digits;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  const auto digits = digits_of(text);
  if (!digits) return std::nullopt;
  int64_t value = 0;
  const char* end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, value);
  if (parsed.ptr != end) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) refuse("an integer beyond 64 bits");
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  const auto digits = digits_of(text);
  if (!digits || digits->find('(') != std::string::npos) return std::nullopt;
  double value = 0;
  const char* end = digits->data() + digits->size();
  const auto parsed = std::from_chars(digits->data(), end, value);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) return std::strtod(digits->c_str(), nullptr);
  return value;
}

Value truncated(double value, const Value& otherwise) {
  if (!std::isfinite(value)) return otherwise;
  if (std::fabs(value) >= 9.2e18) refuse("an integer beyond 64 bits");
  return Value(static_cast<int64_t>(value));
}

Value int_filter(const FilterCall& call) {
  const auto bound = call.bind({"default", "base"});
  if (integer_argument("int", bound[1], 10) != 10) refuse("the filter int with a base");
  const Value otherwise = bound[0] == nullptr ? Value(int64_t{0}) : *bound[0];
  const Value& value = call.value;
  require_defined(value);
  if (value.is_integer()) return Value(value.integer());
  if (value.is(Type::real)) {
    if (std::isinf(value.number())) fail("an infinite number has no integer");
    return truncated(value.number(), otherwise);
  }
  if (!value.is(Type::text)) return otherwise;
  if (!is_ascii(value.text())) refuse("the filter int of a text beyond ASCII");
  call.budget.touch(value.text().size());
  if (const auto integer = parse_integer(value.text())) return Value(*integer);
  const auto real = parse_real(value.text());
  return real ? truncated(*real, otherwise) : otherwise;
}

Value float_filter(const FilterCall& call) {
  const auto bound = call.bind({"default"});
  const Value otherwise = bound[0] == nullptr ? Value(0.0) : *bound[0];
  const Value& value = call.value;
  require_defined(value);
  if (value.is_number()) return Value(value.number());
  if (!value.is(Type::text)) return otherwise;
  if (!is_ascii(value.text())) refuse("the filter float of a text beyond ASCII");
  call.budget.touch(value.text().size());
  const auto real = parse_real(value.text());
  return real ? Value(*real) : otherwise;
}

// To the nearest, ties to the even digit of the exact binary value, as printf rounds.
double rounded(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 330) return value;
  char buffer[700];
  std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(precision), value);
  return std::strtod(buffer, nullptr);
}

Value round_filter(const FilterCall& call) {
  const auto bound = call.bind({"precision", "method"});
  const int64_t precision = integer_argument("round", bound[0], 0);
  const std::string method = bound[1] == nullptr ? "common" : text_argument("round", bound[1]);
  const Value& value = call.value;
  require_defined(value);
  if (!value.is_number()) fail(fmt::format("round of a {}", type_name(value)));
  if (precision < 0) refuse("the filter round with a negative precision");
  if (method == "common")
    return value.is_integer() ? Value(value.integer()) : Value(rounded(value.number(), precision));
  if (method != "ceil" && method != "floor") fail("the method of round is none of common, ceil and floor");
  if (precision > 300) refuse("the filter round with a precision above 300");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.number() * scale;
  if (!std::isfinite(scaled)) fail("round of a number that is not finite");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value abs_filter(const FilterCall& call) {
  call.bind({});
  require_defined(call.value);
  if (!call.value.is_number()) fail(fmt::format("abs of a {}", type_name(call.value)));
  return call.value.number() < 0     ? negate(call.value)
         : call.value.is(Type::real) ? Value(std::fabs(call.value.number()))
                                     : Value(call.value.integer());
}

constexpr Filter kFilters[] = {
    {"abs", abs_filter}, {"float", float_filter}, {"int", int_filter}, {"round", round_filter}};

}  // namespace

std::span<const Filter> number_filters() { return kFilters; }

}  // namespace headroom::jinja
