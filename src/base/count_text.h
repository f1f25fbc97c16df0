// Large numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// "135 M", "260 K", "1.1 B": three significant digits; below ten thousand all digits.
std::string format_count(int64_t number);

}  // namespace headroom
