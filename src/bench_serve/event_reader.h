// Server-sent events from bytes that arrive in any pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::bench {

// As the HTML standard has it (9.2.6): lines end with LF, CR or CRLF; an empty line ends an event; lines of `data` are
// joined with LF; comments and other fields are ignored.
class EventReader {
 public:
  // The most bytes of one event; more is a stream that is not one.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // `event` is called with the data of each whole event that has some.
  explicit EventReader(std::function<void(std::string_view data)> event) : event_(std::move(event)) {}

  // False once an event has become too long: nothing more is read.
  bool read(std::string_view bytes);
  // Whether what was read ends within an event.
  bool inside_event() const { return has_data_ || !line_.empty(); }

 private:
  void end_line();
  void end_event();

  std::function<void(std::string_view)> event_;
  std::string line_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_ = true;  // a byte order mark may stand here
  bool broken_ = false;
};

}  // namespace headroom::bench
