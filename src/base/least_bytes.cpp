#include "base/least_bytes.h"

#include <algorithm>

#include "base/bytes.h"

namespace headroom {

std::string format_least_bytes(int64_t bytes) {
  // The text has three or four digits, so a few steps of 1/2048 exceed its rounding.
  std::string text = format_bytes(bytes);
  for (int64_t raised = bytes; parse_bytes(text) < bytes; text = format_bytes(raised))
    raised += std::max<int64_t>(1, bytes / 2048);
  return text;
}

}  // namespace headroom
