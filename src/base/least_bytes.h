// Sizes that users will type as printed.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// Like format_bytes, rounded up: parse_bytes of the text is at least `bytes`. For least budgets: prints "2.09 GiB" if
// 2.08 GiB would be refused.
std::string format_least_bytes(int64_t bytes);

}  // namespace headroom
