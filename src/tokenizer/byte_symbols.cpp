#include "tokenizer/byte_symbols.h"

#include "tokenizer/boundary.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr char32_t kSymbolEnd = 0x144;

constexpr std::array<int16_t, kSymbolEnd> bytes_of_symbols() {
  std::array<int16_t, kSymbolEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (size_t byte = 0; byte < 256; ++byte) bytes[kByteSymbols[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, kSymbolEnd> kBytesOfSymbols = bytes_of_symbols();

}  // namespace

int byte_of_symbol(char32_t symbol) { return symbol < kSymbolEnd ? kBytesOfSymbols[symbol] : -1; }

void append_byte_symbols(std::string_view bytes, std::string& out) {
  for (const char byte : bytes) append_utf8(kByteSymbols[static_cast<unsigned char>(byte)], out);
}

void spell_boundary(Boundary& boundary) {
  std::string left, right;
  append_utf8(boundary.left, left);
  append_utf8(boundary.right, right);
  boundary.left = kByteSymbols[static_cast<unsigned char>(left.back())];
  boundary.right = kByteSymbols[static_cast<unsigned char>(right.front())];
}

}  // namespace headroom
