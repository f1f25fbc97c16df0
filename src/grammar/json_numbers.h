// Numbers between bounds, digit by digit.
#pragma once

#include <optional>
#include <string>

#include "formats/ordered_json.h"
#include "grammar/automaton_builder.h"

namespace headroom {

// A decimal number: digits before the point without leading zeros ("0" alone), digits after it without trailing zeros.
struct Decimal {
  bool negative = false;
  std::string integer = "0", fraction;

  // The number as written in JSON; nothing for one beyond 10^40 or with more than 40 digits after the point.
  static std::optional<Decimal> of(const OrderedJson& number);
  bool is_zero() const { return integer == "0" && fraction.empty(); }
};

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<NumberBound> least, most;
};

// A number of the range without an exponent, with at most `fraction_digits` after the point (0: an integer), or more if
// a bound has more, and at most JsonValues::kIntegerDigits before it.
GrammarStateId number_between(AutomatonBuilder& builder, const NumberRange& range, int64_t fraction_digits,
                              GrammarStateId next);

}  // namespace headroom
