#include "base/bytes.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace headroom {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 11> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"bytes", 1},
                                       {"kib", 1024.0},
                                       {"mib", 1024.0 * 1024},
                                       {"gib", 1024.0 * 1024 * 1024},
                                       {"tib", 1024.0 * 1024 * 1024 * 1024},
                                       {"kb", 1e3},
                                       {"mb", 1e6},
                                       {"gb", 1e9},
                                       {"tb", 1e12}}};

std::string lower_without_spaces(std::string_view text) {
  std::string out;
  for (char c : text)
    if (!std::isspace(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

int64_t parse_bytes(std::string_view text) {
  const std::string clean = lower_without_spaces(text);
  size_t digits = 0;
  while (digits < clean.size() && (std::isdigit(static_cast<unsigned char>(clean[digits])) || clean[digits] == '.'))
    ++digits;
  const std::string unit = clean.substr(digits);
  for (const Unit& known : kUnits) {
    if (digits == 0 || unit != known.name) continue;
    char* end = nullptr;
    const std::string number = clean.substr(0, digits);
    if (number.find('.') == std::string::npos) {
      int64_t whole = 0;
      auto [at, status] = std::from_chars(number.data(), number.data() + number.size(), whole);
      if (status != std::errc() || static_cast<double>(whole) * known.bytes > 9.2e18) break;
      return whole * static_cast<int64_t>(known.bytes);
    }
    const double value = std::strtod(number.c_str(), &end);
    if (*end != '\0' || value * known.bytes > 9.2e18) break;
    return static_cast<int64_t>(std::llround(value * known.bytes));
  }
  const bool short_unit = digits > 0 && (unit == "k" || unit == "m" || unit == "g" || unit == "t" || unit == "ki" ||
                                         unit == "mi" || unit == "gi" || unit == "ti");
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a size", text),
              short_unit ? fmt::format("did you mean {}{}iB?", clean.substr(0, digits),
                                       static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))))
                         : "write a number with a unit, such as 8GiB, 512MiB or 6000MB");
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> names{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < names.size()) value /= 1024, ++unit;
  if (unit == 0) return fmt::format("{} bytes", bytes);
  const int decimals = std::abs(value) < 10 ? 2 : std::abs(value) < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, names[unit]);
}

}  // namespace headroom
