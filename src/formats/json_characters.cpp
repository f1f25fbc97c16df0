#include "formats/json_characters.h"

#include <algorithm>
#include <span>

namespace headroom {

JsonCharacters::JsonCharacters(const File& file, int64_t offset, int64_t bytes)
    : file_(&file), offset_(offset), left_(bytes) {}

// Whether another character follows, after skipping empty pieces; a zero byte is noted.
bool JsonCharacters::advance() {
  if (!piece_.empty()) {
    if (!zero_at_) zero_at_ = offset_of_front();
    return false;
  }
  if (left_ == 0) return false;
  const auto count = static_cast<size_t>(std::min<int64_t>(left_, static_cast<int64_t>(buffer_.size())));
  file_->read_at(offset_, std::as_writable_bytes(std::span(buffer_).first(count)));
  file_->drop_cache(offset_, static_cast<int64_t>(count));
  offset_ += static_cast<int64_t>(count);
  left_ -= static_cast<int64_t>(count);
  given_ += static_cast<int64_t>(count);
  piece_ = {buffer_.data(), count};
  return !ended();
}

int64_t JsonCharacters::offset_of_front() const { return given_ - static_cast<int64_t>(piece_.size()); }

}  // namespace headroom
