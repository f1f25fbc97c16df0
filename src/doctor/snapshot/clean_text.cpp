#include "doctor/snapshot/clean_text.h"

#include <cstdint>

namespace headroom::doctor {
namespace {

// Length of the UTF-8 character at the start of `text`; 0 when it is malformed, overlong or a surrogate.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    const bool overlong = lead == 0xe0 && byte(1) < 0xa0, surrogate = lead == 0xed && byte(1) > 0x9f;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    const bool overlong = lead == 0xf0 && byte(1) < 0x90, beyond = lead == 0xf4 && byte(1) > 0x8f;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string clean_text(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    const size_t length = character_length(text);
    const bool control = static_cast<uint8_t>(text[0]) < 0x20 || text[0] == 0x7f ||
                         (length == 2 && text[0] == '\xc2' && static_cast<uint8_t>(text[1]) < 0xa0);
    if (out.size() + (control || length == 0 ? 1 : length) > limit) break;
    if (control || length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace headroom::doctor
