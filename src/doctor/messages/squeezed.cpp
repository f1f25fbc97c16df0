#include "doctor/messages/squeezed.h"

namespace headroom::doctor {

namespace {

// Length of the non-ASCII white space at `at`: no-break and zero-width spaces, the byte order mark, and the box-drawing
// characters (U+2500 to U+257F) that Rich and others print around text; 0 for anything else.
size_t blank_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  if (byte(0) == 0xc2 && byte(1) == 0xa0) return 2;
  if (byte(0) == 0xe2 && (byte(1) == 0x94 || byte(1) == 0x95) && byte(2) >= 0x80 && byte(2) < 0xc0) return 3;
  if (byte(0) == 0xe2 && byte(1) == 0x80 && ((byte(2) >= 0x80 && byte(2) <= 0x8b) || byte(2) == 0xaf)) return 3;
  if (byte(0) == 0xe3 && byte(1) == 0x80 && byte(2) == 0x80) return 3;
  return byte(0) == 0xef && byte(1) == 0xbb && byte(2) == 0xbf ? 3 : 0;
}

}  // namespace

Squeezed::Squeezed(std::string_view text) : view_(text.size(), '\0'), origin_(text.size() + 1), line_gap_(text.size()) {
  size_t size = 0;
  bool line_end = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      line_end |= c == '\n';
      continue;
    }
    if ((c & 0x80) != 0) {
      if (const size_t length = blank_length(text, at)) {
        at += length - 1;
        continue;
      }
    }
    if (c == '\\' && at + 1 < text.size()) {
      const char next = text[at + 1];
      if (next == 'n' || next == 't' || next == 'r') {
        line_end |= next == 'n';
        ++at;
        continue;
      }
      if (next == '"' || next == '\'' || next == '\\') continue;  // the escaped character comes next
    }
    view_[size] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    origin_[size] = static_cast<uint32_t>(at);
    line_gap_[size] = line_end ? 1 : 0;
    ++size;
    line_end = false;
  }
  view_.resize(size);
  origin_[size] = static_cast<uint32_t>(text.size());
}

}  // namespace headroom::doctor
