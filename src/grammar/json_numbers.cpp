#include "grammar/json_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <vector>

#include "grammar/json_values.h"

namespace headroom {
namespace {

// Numbers from 0 on whose integer part has `length` digits, between non-negative bounds.
class DigitStates {
 public:
  DigitStates(AutomatonBuilder& builder, const NumberBound& least, const std::optional<NumberBound>& most,
              int64_t fraction_digits, size_t length, GrammarStateId next)
      : builder_(builder),
        least_(least),
        most_(most),
        fraction_digits_(fraction_digits),
        length_(length),
        next_(next) {}

  // Nothing if no number of that length is between the bounds.
  std::optional<GrammarStateId> start() {
    if (least_.value.integer.size() > length_ || (most_ && most_->value.integer.size() < length_)) return std::nullopt;
    return from(0, {least_.value.integer.size() == length_, most_ && most_->value.integer.size() == length_});
  }

 private:
  // Whether the digits so far are those of a bound.
  struct Tight {
    bool low, high;
  };

  static int digit_at(const Decimal& value, size_t length, size_t at) {
    if (at < length) return value.integer[at] - '0';
    return at - length < value.fraction.size() ? value.fraction[at - length] - '0' : 0;
  }
  bool rest_is_zero(const Decimal& value, size_t at) const { return at >= length_ + value.fraction.size(); }

  // Whether the number may end with `at` digits.
  bool may_stop(size_t at, Tight tight) const {
    if (tight.low && (least_.exclusive || !rest_is_zero(least_.value, at))) return false;
    return !(tight.high && most_->exclusive && rest_is_zero(most_->value, at));
  }

  // After `at` digits of the integer part and the fraction.
  GrammarStateId from(size_t at, Tight tight) {
    const std::tuple key{at, tight.low, tight.high};
    if (const auto found = states_.find(key); found != states_.end()) return found->second;
    std::vector<GrammarStateId> alternatives;
    const bool more = at < length_ + static_cast<size_t>(fraction_digits_);
    if (at >= length_ && may_stop(at, tight)) alternatives.push_back(next_);
    if (at == length_ && more) alternatives.push_back(builder_.literal(".", digit(at, tight)));
    if (at != length_ && more) alternatives.push_back(digit(at, tight));
    return states_[key] = builder_.any_of(alternatives);
  }

  GrammarStateId digit(size_t at, Tight tight) {
    const int smallest = tight.low ? digit_at(least_.value, length_, at) : (at == 0 && length_ > 1 ? 1 : 0);
    const int largest = tight.high ? digit_at(most_->value, length_, at) : 9;
    std::map<std::pair<bool, bool>, ByteSet> groups;
    for (int value = smallest; value <= largest; ++value)
      groups[{tight.low && value == smallest, tight.high && value == largest}].add(static_cast<uint8_t>('0' + value));
    std::vector<GrammarStateId> alternatives;
    for (const auto& group : groups)
      alternatives.push_back(builder_.bytes(group.second, from(at + 1, {group.first.first, group.first.second})));
    return builder_.any_of(alternatives);
  }

  AutomatonBuilder& builder_;
  const NumberBound& least_;
  const std::optional<NumberBound>& most_;
  int64_t fraction_digits_;
  size_t length_;
  GrammarStateId next_;
  std::map<std::tuple<size_t, bool, bool>, GrammarStateId> states_;
};

GrammarStateId magnitudes(AutomatonBuilder& builder, const NumberBound& least, const std::optional<NumberBound>& most,
                          int64_t fraction_digits, GrammarStateId next) {
  std::vector<GrammarStateId> lengths;
  for (int64_t length = 1; length <= JsonValues::kIntegerDigits; ++length)
    if (const auto state =
            DigitStates(builder, least, most, fraction_digits, static_cast<size_t>(length), next).start())
      lengths.push_back(*state);
  return builder.any_of(lengths);
}

NumberBound opposite(NumberBound bound) {
  bound.value.negative = !bound.value.negative;
  return bound;
}

constexpr size_t kMostDigits = 40;

}  // namespace

std::optional<Decimal> Decimal::of(const OrderedJson& number) {
  std::string text = number.is_number_float() ? fmt::format("{}", number.get<double>()) : number.dump();
  Decimal out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const size_t e = text.find('e'); e != std::string::npos) {
    const char* first = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(first, text.data() + text.size(), exponent);
    text.resize(e);
  }
  const size_t point = text.find('.');
  std::string digits = text;
  if (point != std::string::npos) digits.erase(point, 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  int before = static_cast<int>(std::min(point, text.size())) + exponent;
  if (std::abs(before) > static_cast<int>(kMostDigits)) return std::nullopt;
  if (before <= 0) digits.insert(0, static_cast<size_t>(1 - before), '0'), before = 1;
  if (static_cast<size_t>(before) > digits.size()) digits.append(static_cast<size_t>(before) - digits.size(), '0');
  out.integer = digits.substr(0, static_cast<size_t>(before));
  out.fraction = digits.substr(static_cast<size_t>(before));
  out.integer.erase(0, std::min(out.integer.find_first_not_of('0'), out.integer.size() - 1));
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  if (out.fraction.size() > kMostDigits) return std::nullopt;
  if (out.is_zero()) out.negative = false;
  return out;
}

GrammarStateId number_between(AutomatonBuilder& builder, const NumberRange& range, int64_t fraction_digits,
                              GrammarStateId next) {
  if (fraction_digits > 0)
    for (const auto* bound : {&range.least, &range.most})
      if (*bound) fraction_digits = std::max(fraction_digits, static_cast<int64_t>((*bound)->value.fraction.size()));
  std::vector<GrammarStateId> signs;
  const bool least_below = !range.least || range.least->value.negative;
  const bool most_below = range.most && range.most->value.negative;
  if (!most_below) {
    const NumberBound from = least_below ? NumberBound{} : *range.least;
    signs.push_back(magnitudes(builder, from, range.most, fraction_digits, next));
  }
  if (least_below) {
    // Of negative numbers the one of larger magnitude is smaller; 0 itself has no sign.
    const NumberBound from = most_below ? opposite(*range.most) : NumberBound{{}, true};
    std::optional<NumberBound> to;
    if (range.least) to = opposite(*range.least);
    signs.push_back(builder.literal("-", magnitudes(builder, from, to, fraction_digits, next)));
  }
  return builder.any_of(signs);
}

}  // namespace headroom
