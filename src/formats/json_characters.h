// A JSON text for the event parser, piece by piece: a file's is never completely in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "formats/file.h"

namespace headroom {

// Returns the characters once. The parser takes a zero byte for the end of the text and ignores the rest; here it is
// the end too, and zero_at() says where it was.
class JsonCharacters {
 public:
  // `text` outlives this.
  explicit JsonCharacters(std::string_view text) : piece_(text), given_(static_cast<int64_t>(text.size())) {}
  // `bytes` of a file, which outlives this, from `offset`. Reading throws as File::read_at.
  JsonCharacters(const File& file, int64_t offset, int64_t bytes);
  JsonCharacters(const JsonCharacters&) = delete;
  JsonCharacters& operator=(const JsonCharacters&) = delete;

  // For Json::sax_parse(characters.begin(), characters.end(), events), once.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    explicit Iterator(JsonCharacters* from = nullptr) : from_(from) {}
    reference operator*() const { return from_->piece_.front(); }
    Iterator& operator++() {
      from_->piece_.remove_prefix(1);
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_end() == b.at_end(); }

   private:
    bool at_end() const { return from_ == nullptr || from_->ended(); }
    JsonCharacters* from_;
  };
  Iterator begin() { return Iterator(this); }
  Iterator end() { return Iterator(); }

  // The next character, if there is one.
  std::optional<char> front() { return ended() ? std::nullopt : std::optional(piece_.front()); }
  // The offset of the first zero byte in the text, once the parser has reached it.
  std::optional<int64_t> zero_at() const { return zero_at_; }

 private:
  bool ended() { return (piece_.empty() || piece_.front() == '\0') && !advance(); }
  bool advance();
  int64_t offset_of_front() const;

  std::string_view piece_;  // in memory and not returned yet
  int64_t given_ = 0;       // characters of the text before the end of `piece_`
  const File* file_ = nullptr;
  int64_t offset_ = 0, left_ = 0;  // of the file, behind `piece_`
  std::array<char, 16384> buffer_;
  std::optional<int64_t> zero_at_;
};

}  // namespace headroom
