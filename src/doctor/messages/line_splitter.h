// Splits a stream, which arrives in pieces of any size, into lines, with bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::doctor {

// A line without its line end. A line longer than kLongest comes in several parts; each later part begins with the last
// kOverlap bytes of the previous one, so that a phrase at the cut is whole in one of them.
struct RawLine {
  std::string_view text;
  int64_t number = 0;   // from 1; the same in all parts of a line
  size_t repeated = 0;  // bytes at the front that repeat the end of the previous part
  bool more = false;    // another part of the same line follows and repeats the last kOverlap bytes of this one
};

class LineSplitter {
 public:
  static constexpr size_t kLongest = 64 << 10;
  static constexpr size_t kOverlap = 6 << 10;
  using Receiver = std::function<void(const RawLine&)>;

  explicit LineSplitter(Receiver receiver) : receiver_(std::move(receiver)) {}

  void feed(std::string_view chunk);
  // Call at the end of the stream: emits a last line that has no line end.
  void finish();

 private:
  void emit_parts();

  Receiver receiver_;
  std::string pending_;
  size_t repeated_ = 0;
  int64_t number_ = 1;
};

}  // namespace headroom::doctor
