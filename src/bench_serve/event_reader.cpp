#include "bench_serve/event_reader.h"

#include <utility>

namespace headroom::bench {

bool EventReader::read(std::string_view bytes) {
  while (!bytes.empty() && !broken_) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    broken_ = line_.size() + data_.size() > kMostBytes;
    if (end == std::string_view::npos || broken_) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line();
  }
  return !broken_;
}

void EventReader::end_line() {
  std::string_view line = line_;
  if (std::exchange(first_, false) && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  if (line.empty()) {
    end_event();
  } else if (line == "data" || line.starts_with("data:")) {
    line.remove_prefix(line.size() == 4 ? 4 : 5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (std::exchange(has_data_, true)) data_ += '\n';
    data_ += line;
  }
  line_.clear();
}

void EventReader::end_event() {
  if (std::exchange(has_data_, false)) event_(data_);
  data_.clear();
}

}  // namespace headroom::bench
