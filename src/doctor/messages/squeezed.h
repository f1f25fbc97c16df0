// Text in lower case without white space, with a map back to the original. Messages are matched in this form, so that a
// terminal's wrapping, repeated spaces and capital letters make no difference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

class Squeezed {
 public:
  // Escapes of quoted strings ("\n", "\t", "\""), no-break spaces and box-drawing characters count as white space.
  // text.size() < 4 GiB.
  explicit Squeezed(std::string_view text);

  std::string_view view() const { return view_; }
  size_t size() const { return view_.size(); }
  char operator[](size_t i) const { return view_[i]; }
  // Offset of byte i in the original text; for i = size(), the end of the original.
  size_t origin(size_t i) const { return origin_[i]; }
  // Whether white space precedes byte i (true at both ends).
  bool gap(size_t i) const { return i == 0 || i >= view_.size() || origin_[i] != origin_[i - 1] + 1; }
  // Whether a line end precedes byte i (false at both ends).
  bool line_gap(size_t i) const { return i != 0 && i < view_.size() && line_gap_[i] != 0; }

 private:
  std::string view_;
  std::vector<uint32_t> origin_;
  std::vector<uint8_t> line_gap_;
};

}  // namespace headroom::doctor
