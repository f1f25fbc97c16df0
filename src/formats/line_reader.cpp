#include "formats/line_reader.h"

#include <cstring>
#include <span>
#include <utility>

namespace headroom {

bool LineReader::next(std::string_view& line) {
  for (;;) {
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    const size_t length = rest.find('\n');
    if (length != std::string_view::npos) {
      begin_ += length + 1;
      if (std::exchange(inside_, false)) continue;
      line = rest.substr(0, length);
      return true;
    }
    if (ended_) {
      begin_ = end_;
      line = rest;
      return !rest.empty() && !std::exchange(inside_, false);
    }
    fill();
  }
}

// Reads more of the file after the started line, which moves to the front.
void LineReader::fill() {
  if (begin_ == 0 && end_ == buffer_.size()) begin_ = end_, inside_ = true;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto room = std::as_writable_bytes(std::span(buffer_).subspan(end_));
  const int64_t count = file_.read_some_at(offset_, room);
  file_.drop_cache(offset_, count);
  offset_ += count;
  end_ += static_cast<size_t>(count);
  ended_ = count == 0;
}

}  // namespace headroom
