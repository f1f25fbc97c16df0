// A set of bytes.
#pragma once

#include <array>
#include <cstdint>

namespace headroom {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet range(unsigned first, unsigned last) {
    ByteSet set;
    for (unsigned byte = first; byte <= last; ++byte) set.add(static_cast<uint8_t>(byte));
    return set;
  }
  void add(uint8_t byte) { words[byte >> 6] |= uint64_t{1} << (byte & 63); }
  void add(const ByteSet& other) {
    for (size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
  }
  bool has(uint8_t byte) const { return (words[byte >> 6] >> (byte & 63) & 1) != 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  friend auto operator<=>(const ByteSet&, const ByteSet&) = default;
};

}  // namespace headroom
