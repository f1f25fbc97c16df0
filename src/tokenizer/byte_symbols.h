// The printable characters that stand for the 256 bytes in the vocabularies of byte-level tokenizers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// Byte -> code point: printable Latin-1 stands for itself, the other 68 bytes are U+0100 and on, in order.
constexpr std::array<char32_t, 256> byte_symbols() {
  std::array<char32_t, 256> symbols{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    symbols[byte] = printable ? byte : next++;
  }
  return symbols;
}

inline constexpr std::array<char32_t, 256> kByteSymbols = byte_symbols();

// The byte that a symbol stands for, or -1.
int byte_of_symbol(char32_t symbol);

// Appends the symbols of the bytes to `out`.
void append_byte_symbols(std::string_view bytes, std::string& out);

}  // namespace headroom
