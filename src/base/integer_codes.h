// Names of integer codes by bits and group: "int8" (a scale per row), "int4" (a scale per 32 elements), and with other
// groups "int8-g128", "int4-g64", "int4-row".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

struct IntegerCodes {
  int bits = 8;
  int64_t group = 0;  // elements of a row that share a scale; 0: the whole row
  bool operator==(const IntegerCodes&) const = default;
};

// Parses such a name; empty for any other. Groups are multiples of 8 from 8 to 65536.
std::optional<IntegerCodes> integer_codes(std::string_view name);
std::string integer_codes_name(const IntegerCodes& codes);

// The allowed group nearest to `wanted` that divides a row of `row` elements; 0 if there is none.
int64_t nearest_group(int64_t row, int64_t wanted);

}  // namespace headroom
