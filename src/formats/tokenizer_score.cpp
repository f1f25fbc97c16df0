#include "formats/tokenizer_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace headroom {
namespace {

constexpr int64_t kLargestPower = 308;
constexpr int64_t kMostExponent = 1'000'000;  // larger ones give the same: infinity or zero

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads characters from the front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool skip(char a, char b) {
    if (at_ == text_.size() || (text_[at_] != a && text_[at_] != b)) return false;
    ++at_;
    return true;
  }
  bool at_digit() const { return at_ < text_.size() && is_digit(text_[at_]); }
  unsigned digit() { return static_cast<unsigned>(text_[at_++] - '0'); }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

// Appends a digit to a 64-bit number; false if it does not fit.
bool append_digit(uint64_t& number, unsigned digit) {
  if (number > UINT64_MAX / 10 || (number == UINT64_MAX / 10 && digit > UINT64_MAX % 10)) return false;
  number = number * 10 + digit;
  return true;
}

// 10^exponent, correctly rounded.
double power_of_ten(int64_t exponent) {
  std::array<char, 8> text{'1', 'e'};
  text[2] = static_cast<char>('0' + exponent / 100);
  text[3] = static_cast<char>('0' + exponent / 10 % 10);
  text[4] = static_cast<char>('0' + exponent % 10);
  return std::strtod(text.data(), nullptr);
}

double scale(double number, int64_t exponent) {
  while (exponent < -kLargestPower && number != 0) {
    number /= power_of_ten(kLargestPower);
    exponent += kLargestPower;
  }
  if (number == 0) return 0;
  if (exponent > kLargestPower) return HUGE_VAL;
  return exponent >= 0 ? number * power_of_ten(exponent) : number / power_of_ten(-exponent);
}

}  // namespace

double parse_token_score(std::string_view number) {
  Reader in(number);
  const bool negative = in.skip('-', '-');
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool fits = true;
  while (in.at_digit()) {
    const unsigned digit = in.digit();
    fits = fits && append_digit(digits, digit);
    if (!fits) ++exponent;
  }
  if (in.skip('.', '.')) {
    while (in.at_digit()) {
      const unsigned digit = in.digit();
      fits = fits && append_digit(digits, digit);
      if (fits) --exponent;
    }
  }
  if (in.skip('e', 'E')) {
    const bool down = in.skip('-', '-');
    in.skip('+', '+');
    int64_t stated = 0;
    while (in.at_digit()) stated = std::min(stated * 10 + in.digit(), kMostExponent);
    exponent += down ? -stated : stated;
  }
  const double size = scale(static_cast<double>(digits), exponent);
  return negative ? -size : size;
}

}  // namespace headroom
