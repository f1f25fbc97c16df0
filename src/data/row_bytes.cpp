#include "data/row_bytes.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

std::string_view RowBytes::from(int64_t at, int64_t least) const {
  HR_CHECK(at >= 0 && at <= size_ && least <= kMostAtOnce, "{} bytes from {} of {}", least, at, size_);
  const int64_t held_end = held_at_ + static_cast<int64_t>(held_.size());
  if (at < held_at_ || std::min(at + least, size_) > held_end) {
    const auto count = static_cast<size_t>(std::min(size_ - at, static_cast<int64_t>(window_.size())));
    const std::span<char> into = window_.first(count);
    file_->read_at(offset_ + at, std::as_writable_bytes(into));
    file_->drop_cache(offset_ + at, static_cast<int64_t>(count));
    held_ = {into.data(), count};
    held_at_ = at;
  }
  return held_.substr(static_cast<size_t>(at - held_at_));
}

}  // namespace headroom
