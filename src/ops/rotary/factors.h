// The factors of LongRoPE (Ding et al. 2024) as an attribute.
#pragma once

#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/attrs.h"

namespace headroom {

// Attribute "factors" of rope_table: a number per pair of channels, separated by commas.
inline std::vector<double> longrope_factors(const Attrs& attrs) {
  const std::string_view text = attrs.text("factors");
  std::vector<double> factors;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    double factor = 0;
    const auto [rest, error] = std::from_chars(at, end, factor);
    HR_CHECK(error == std::errc{} && factors.size() < 65536, "rope_table: factors '{}'", text);
    factors.push_back(factor);
    if (rest == end) return factors;
    HR_CHECK(*rest == ',', "rope_table: factors '{}'", text);
    at = rest + 1;
  }
}

}  // namespace headroom
