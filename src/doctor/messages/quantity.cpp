#include "doctor/messages/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::doctor {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return c >= 'a' && c <= 'z'; }

// Digits of a number: whole part and fraction, without separators.
struct Digits {
  std::string whole, fraction;
  size_t end = 0;
  bool wrapped = false;  // a line end stood between digits
};

// The run of digits and separators at `at`, up to white space other than a line end.
std::string run_at(const Squeezed& text, size_t at, size_t& end, bool& wrapped) {
  std::string run;
  size_t i = at;
  for (; i < text.size() && i - at < 64; ++i) {
    if (!digit(text[i]) && text[i] != '.' && text[i] != ',') break;
    if (i > at && text.gap(i)) {
      if (!text.line_gap(i)) break;
      wrapped = true;
    }
    run += text[i];
  }
  // "926. GiB": NumPy prints a decimal point even without a fraction.
  constexpr std::array<std::string_view, 5> kUnits = {"kib", "mib", "gib", "tib", "pib"};
  const bool unit =
      std::find(kUnits.begin(), kUnits.end(), text.view().substr(std::min(i, text.size()), 3)) != kUnits.end();
  if (unit && run.size() > 1 && run.back() == '.' && digit(run[run.size() - 2])) {
    run.pop_back();
    end = i;
    return run;
  }
  while (!run.empty() && !digit(run.back())) {  // a full stop or comma of the sentence
    run.pop_back();
    --i;
  }
  end = i;
  return run;
}

// Whether these are thousands separators: the first group has one to three digits, all others three.
bool thousands(const std::string& run, char separator) {
  size_t start = 0;
  bool first = true;
  while (true) {
    const size_t next = run.find(separator, start);
    const size_t length = (next == std::string::npos ? run.size() : next) - start;
    if (first ? length == 0 || length > 3 : length != 3) return false;
    if (next == std::string::npos) return !first;
    start = next + 1;
    first = false;
  }
}

std::string without(std::string text, char c) {
  text.erase(std::remove(text.begin(), text.end(), c), text.end());
  return text;
}

std::optional<Digits> digits_of_run(const std::string& run) {
  Digits digits;
  const size_t dots = static_cast<size_t>(std::count(run.begin(), run.end(), '.'));
  const size_t commas = static_cast<size_t>(std::count(run.begin(), run.end(), ','));
  char decimal = 0;
  if (dots > 0 && commas > 0) {
    decimal = run.rfind('.') > run.rfind(',') ? '.' : ',';
    if ((decimal == '.' ? dots : commas) != 1) return std::nullopt;
  } else if (dots == 1) {
    decimal = '.';
  } else if (commas == 1 && !thousands(run, ',')) {
    decimal = ',';
  } else if ((dots > 1 && !thousands(run, '.')) || (commas > 1 && !thousands(run, ','))) {
    return std::nullopt;
  }
  const size_t point = decimal == 0 ? std::string::npos : run.rfind(decimal);
  const std::string whole = run.substr(0, point);
  if (decimal != 0 && dots > 0 && commas > 0 && !thousands(whole, decimal == '.' ? ',' : '.')) return std::nullopt;
  digits.whole = without(without(whole, '.'), ',');
  if (point != std::string::npos) digits.fraction = run.substr(point + 1);
  return digits;
}

std::optional<Digits> digits_at(const Squeezed& text, size_t at) {
  if (at >= text.size() || !digit(text[at])) return std::nullopt;
  // After a digit or point this would be the tail of another number.
  size_t end = 0;
  bool wrapped = false;
  auto digits = digits_of_run(run_at(text, at, end, wrapped));
  if (!digits) return std::nullopt;
  digits->end = end;
  digits->wrapped = wrapped;
  return digits;
}

struct Unit {
  std::string_view name;
  uint32_t set;
  int power;  // of 1024; for kDecimal of 1000
};
constexpr std::array<Unit, 25> kUnits = {{
    {"bytes", kIec | kSi | kDecimal, 0},
    {"byte", kIec | kSi | kDecimal, 0},
    {"kib", kIec, 1},
    {"mib", kIec, 2},
    {"gib", kIec, 3},
    {"tib", kIec, 4},
    {"kb", kSi, 1},
    {"mb", kSi, 2},
    {"gb", kSi, 3},
    {"tb", kSi, 4},
    {"kb", kDecimal, 1},
    {"mb", kDecimal, 2},
    {"gb", kDecimal, 3},
    {"tb", kDecimal, 4},
    {"b", kSi, 0},
    {"b", kDecimal, 0},
    {"ki", kLetter, 1},
    {"mi", kLetter, 2},
    {"gi", kLetter, 3},
    {"ti", kLetter, 4},
    {"k", kLetter, 1},
    {"m", kLetter, 2},
    {"g", kLetter, 3},
    {"t", kLetter, 4},
    {"b", kLetter, 0},
}};

// The unit at `at`, which must be followed by white space, the end, or neither a letter nor a digit.
const Unit* unit_at(const Squeezed& text, size_t at, uint32_t units) {
  for (const Unit& unit : kUnits) {
    if ((unit.set & units) == 0 || text.view().substr(at, unit.name.size()) != unit.name) continue;
    const size_t end = at + unit.name.size();
    if (end >= text.size() || text.gap(end) || (!letter(text[end]) && !digit(text[end]))) return &unit;
  }
  return nullptr;
}

std::optional<Quantity> scaled(const Digits& digits, double base, int power) {
  long double unit = 1;
  for (int i = 0; i < power; ++i) unit *= base;
  if (digits.whole.size() > 19) return std::nullopt;
  uint64_t whole = 0;
  for (const char c : digits.whole) whole = whole * 10 + static_cast<uint64_t>(c - '0');
  long double fraction = 0, step = 1;
  for (size_t i = 0; i < digits.fraction.size() && i < 18; ++i) {
    step /= 10;
    fraction += step * (digits.fraction[i] - '0');
  }
  const long double bytes = (static_cast<long double>(whole) + fraction) * unit;
  if (bytes > 9.2e18L) return std::nullopt;
  Quantity quantity;
  quantity.bytes =
      power == 0 && digits.fraction.empty() ? static_cast<int64_t>(whole) : static_cast<int64_t>(std::llround(bytes));
  quantity.resolution = std::max<int64_t>(1, std::llround(unit * step));
  return quantity;
}

}  // namespace

std::optional<Quantity> quantity_at(const Squeezed& text, size_t at, uint32_t units) {
  const auto digits = digits_at(text, at);
  if (!digits) return std::nullopt;
  if (const Unit* unit = unit_at(text, digits->end, units)) {
    auto quantity = scaled(*digits, unit->set == kDecimal ? 1000 : 1024, unit->power);
    if (quantity) quantity->end = digits->end + unit->name.size();
    return quantity;
  }
  if ((units & kBare) == 0 || digits->wrapped) return std::nullopt;
  if (digits->end < text.size() && letter(text[digits->end]) && !text.gap(digits->end)) return std::nullopt;
  auto quantity = scaled(*digits, 1, 0);
  if (quantity) quantity->end = digits->end;
  return quantity;
}

std::optional<Number> whole_number_at(const Squeezed& text, size_t at, bool may_end) {
  if (at >= text.size() || !digit(text[at])) return std::nullopt;
  Number number;
  size_t i = at;
  for (; i < text.size() && i - at < 24; ++i) {
    const bool grouped = text[i] == ',' && i + 3 < text.size() && digit(text[i + 1]) && digit(text[i + 2]) &&
                         digit(text[i + 3]) && !text.gap(i + 1) && (i + 4 >= text.size() || !digit(text[i + 4]));
    if (i > at && text.gap(i)) break;
    if (grouped) continue;
    if (!digit(text[i])) break;
    if (number.value > 900'000'000'000'000'000) return std::nullopt;
    number.value = number.value * 10 + (text[i] - '0');
  }
  if (i >= text.size() && !may_end) return std::nullopt;
  number.end = i;
  return number;
}

std::optional<Real> real_at(const Squeezed& text, size_t at, bool may_end) {
  const auto digits = digits_at(text, at);
  if (!digits || digits->whole.size() > 15 || (digits->end >= text.size() && !may_end)) return std::nullopt;
  Real real;
  for (const char c : digits->whole) real.value = real.value * 10 + (c - '0');
  double step = 1;
  for (const char c : digits->fraction) real.value += (step /= 10) * (c - '0');
  real.end = digits->end;
  return real;
}

std::optional<Quantity> parse_quantity(std::string_view text, uint32_t units) {
  if (text.size() > 64) return std::nullopt;
  const Squeezed squeezed(text);
  const auto quantity = quantity_at(squeezed, 0, units);
  return quantity && quantity->end == squeezed.size() ? quantity : std::nullopt;
}

}  // namespace headroom::doctor
