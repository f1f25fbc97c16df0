// Finds a few dozen words in text at about one byte per cycle, with Wu and Manber's algorithm (1994) on blocks of three
// bytes. Case is ignored; for speed, a few other pairs of bytes also compare equal (see fold()).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

class WordScan {
 public:
  static constexpr size_t kShortest = 4;

  struct Word {
    std::string_view text;  // at least kShortest bytes; must outlive the scan
    uint32_t tag = 0;       // chosen by the caller and returned with a hit
  };
  struct Hit {
    size_t position = std::string_view::npos;  // npos: none
    size_t word = 0;                           // index into the words
    uint32_t tag = 0;
  };

  explicit WordScan(std::vector<Word> words);

  // The first hit that starts at `from` or later; of words that start at the same byte, the first one in the list.
  Hit next(std::string_view text, size_t from) const;
  // The OR of the tags of all words in `text`. Thread-safe.
  uint32_t tags(std::string_view text) const;

 private:
  static unsigned char fold(char byte) { return static_cast<unsigned char>(byte) | 0x20; }
  // Hash of the three bytes that end at `end`, folded. Also reads the byte before them.
  static size_t block(const char* end) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, end - 4, 4);
    if constexpr (std::endian::native == std::endian::little) bytes >>= 8;
    return (((bytes | 0x202020u) & 0xffffffu) * 2654435761u) >> 17;
  }
  static size_t block_at(const std::string& word, size_t at);
  bool equal(std::string_view text, size_t position, const std::string& word) const;

  std::vector<std::string> words_;  // folded
  std::vector<uint32_t> tags_;
  size_t shortest_ = 0;
  std::array<uint8_t, 32768> shift_{};
  std::array<uint16_t, 32768> first_{};  // by block: start in candidates_, for blocks of shift 0
  std::vector<uint16_t> candidates_;     // lists of word indices, each terminated by kEnd
  static constexpr uint16_t kEnd = 0xffff;
};

}  // namespace headroom::doctor
