// Parses server-sent events from bytes that arrive in any pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::bench {

// Follows the HTML standard (9.2.6): lines end with LF, CR or CRLF; an empty line ends an event; lines of `data` are
// joined with LF; comments and other fields are ignored.
class EventReader {
 public:
  // The most bytes of one event; with more it is not an event stream.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // `event` is called with the data of each complete event that has data.
  explicit EventReader(std::function<void(std::string_view data)> event) : event_(std::move(event)) {}

  // Returns false when an event is too long; no more is read then.
  bool read(std::string_view bytes);
  // Whether the bytes read so far end inside an event.
  bool inside_event() const { return has_data_ || !line_.empty(); }

 private:
  void end_line();
  void end_event();

  std::function<void(std::string_view)> event_;
  std::string line_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_ = true;  // a byte order mark is allowed here
  bool broken_ = false;
};

}  // namespace headroom::bench
