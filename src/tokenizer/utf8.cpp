#include "tokenizer/utf8.h"

#include "base/error.h"

namespace headroom {
namespace {

// Bytes of the character that a lead byte begins (0: none), and the range of its second byte.
struct Lead {
  unsigned bytes;
  unsigned char low;
  unsigned char high;
};

Lead classify(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead < 0xF0) {
    const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : 0xBF;
    return {3, low, high};
  }
  if (lead > 0xF4) return {0, 0, 0};
  const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;
  return {4, low, high};
}

}  // namespace

void append_utf8(char32_t code, std::string& out) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

Utf8Check check_utf8(std::string_view text, size_t from) {
  size_t at = from;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const Lead kind = classify(lead);
    if (kind.bytes == 0) return {at, 1, false};
    for (unsigned i = 1; i < kind.bytes; ++i) {
      if (at + i >= text.size()) return {at, i, true};
      const auto byte = static_cast<unsigned char>(text[at + i]);
      const bool valid = i == 1 ? byte >= kind.low && byte <= kind.high : (byte & 0xC0) == 0x80;
      if (!valid) return {at, i, false};
    }
    at += kind.bytes;
  }
  return {at, 0, false};
}

void require_utf8(std::string_view text, size_t base) {
  const Utf8Check check = check_utf8(text);
  if (check.valid == text.size()) return;
  throw Error(ErrorKind::format,
              fmt::format("the text is not UTF-8: byte {} is 0x{:02x}", base + check.valid,
                          static_cast<unsigned char>(text[check.valid])),
              "convert the text to UTF-8, for example with iconv");
}

}  // namespace headroom
