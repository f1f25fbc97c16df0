#include "doctor/remedies/figures.h"

#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"

namespace headroom::doctor {

std::string figure(int64_t bytes) {
  const double gib = static_cast<double>(bytes) / (1024.0 * 1024 * 1024);
  if (std::abs(gib) < 0.1) return format_bytes(bytes);
  return fmt::format("{:.{}f} GiB", gib, std::abs(gib) < 100 ? 2 : 1);
}

}  // namespace headroom::doctor
