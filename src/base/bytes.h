// Byte counts as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Parses "8GiB", "512 MiB", "1.5GB", "1048576" (bytes). Units KiB MiB GiB TiB and KB MB GB TB (powers of 1000),
// case-insensitive. Throws Error(usage) naming the text when it is not a size, is negative, or does not fit 63 bits.
int64_t parse_bytes(std::string_view text);

// "1.50 GiB", "12.0 MiB", "640 KiB", "17 bytes": three significant digits, binary units.
std::string format_bytes(int64_t bytes);

// Rounds `value` up to a multiple of `alignment`, which need not be a power of two.
constexpr int64_t align_up(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace headroom
