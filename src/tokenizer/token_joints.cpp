#include "tokenizer/token_joints.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace headroom {

void TokenJoints::add_token(std::string_view token) {
  if (token.empty()) return;
  Utf8Char before = decode_utf8(token, 0);
  for (size_t at = before.bytes; at < token.size();) {
    const Utf8Char next = decode_utf8(token, at);
    if ((before.code | next.code) < 0x80)
      ascii_[before.code][next.code >> 6] |= uint64_t{1} << (next.code & 63);
    else
      pairs_.push_back(uint64_t{before.code} << 32 | next.code);
    before = next;
    at += next.bytes;
  }
  if (pairs_.size() > 2 * compacted_ + kCompactAt) compact();
}

void TokenJoints::compact() {
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  compacted_ = pairs_.size();
}

void TokenJoints::seal() {
  compact();
  pairs_.shrink_to_fit();
}

bool TokenJoints::listed(char32_t left, char32_t right) const {
  return std::binary_search(pairs_.begin(), pairs_.end(), uint64_t{left} << 32 | right);
}

}  // namespace headroom
