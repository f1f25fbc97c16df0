// Which characters can be next to each other within a token.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headroom {

// If no token contains two characters side by side, no token crosses the place between them: a word may be cut there,
// whatever the order of merges or the scores. Immutable once sealed.
class TokenJoints {
 public:
  // Adds the neighbouring characters of a token.
  void add_token(std::string_view token);
  // Sorts the table; call it once, after all tokens.
  void seal();
  // Declares the tokens unknown: every pair may be in one.
  void give_up() { unknown_ = true; }

  // Whether a token may contain `left` and `right` side by side.
  bool may_join(char32_t left, char32_t right) const {
    if (unknown_) return true;
    if ((left | right) < 0x80) return (ascii_[left][right >> 6] >> (right & 63) & 1) != 0;
    return listed(left, right);
  }
  int64_t memory_bytes() const { return static_cast<int64_t>(pairs_.capacity() * sizeof(uint64_t)); }

 private:
  static constexpr size_t kCompactAt = size_t{1} << 17;
  bool listed(char32_t left, char32_t right) const;
  void compact();

  bool unknown_ = false;
  std::array<std::array<uint64_t, 2>, 128> ascii_{};
  std::vector<uint64_t> pairs_;  // left << 32 | right beyond ASCII, sorted
  size_t compacted_ = 0;
};

}  // namespace headroom
