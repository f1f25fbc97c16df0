// Parses the smallest parts of patterns: escapes and character classes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tokenizer/char_set.h"

namespace headroom {

// A position in the text of a pattern (valid UTF-8).
struct PatternReader {
  std::string_view text;
  size_t position;
  const std::string& place;  // names the pattern in errors

  bool done() const { return position == text.size(); }
  std::string_view rest() const { return text.substr(position); }
  bool at(char c) const { return !done() && text[position] == c; }
  bool take(char c);
  bool take(std::string_view s);
  char next_byte() { return text[position++]; }
  char32_t next_char();
  // Throws Error(format): `what` is not supported here.
  [[noreturn]] void refuse(std::string_view what) const;
};

// Reads an escape, with the reader at its backslash, and adds it to `set`. Returns the code point if it means one
// character, -1 if a class.
int32_t add_pattern_escape(PatternReader& reader, CharSet& set);

// Reads [...], with the reader at the opening bracket.
CharSet read_pattern_class(PatternReader& reader);

}  // namespace headroom
