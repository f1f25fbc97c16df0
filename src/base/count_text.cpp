#include "base/count_text.h"

#include <fmt/format.h>

namespace headroom {

std::string format_count(int64_t number) {
  const double value = static_cast<double>(number);
  if (value >= 9.995e8) return fmt::format("{:.3g} B", value / 1e9);
  if (value >= 9.995e5) return fmt::format("{:.3g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.3g} K", value / 1e3);
  return fmt::format("{}", number);
}

}  // namespace headroom
