// Cuts a stream, given in pieces of any size, into lines in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::doctor {

// A line, without its end. A line longer than kLongest comes in several parts; each part after the first begins with
// the last kOverlap bytes of the part before, so that a phrase across the cut is whole in one of them.
struct RawLine {
  std::string_view text;
  int64_t number = 0;   // from 1; equal in all parts of a line
  size_t repeated = 0;  // bytes at the front that the part before ended with
  bool more = false;    // another part of the same line follows, beginning with this one's last kOverlap bytes
};

class LineSplitter {
 public:
  static constexpr size_t kLongest = 64 << 10;
  static constexpr size_t kOverlap = 6 << 10;
  using Receiver = std::function<void(const RawLine&)>;

  explicit LineSplitter(Receiver receiver) : receiver_(std::move(receiver)) {}

  void feed(std::string_view chunk);
  // The stream has ended: hands out a last line without a line end.
  void finish();

 private:
  void emit_parts();

  Receiver receiver_;
  std::string pending_;
  size_t repeated_ = 0;
  int64_t number_ = 1;
};

}  // namespace headroom::doctor
