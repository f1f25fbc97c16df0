// Escaped texts and numbers of pickle protocol 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// "'it\\'s'" -> it's: a Python 2 string literal as in opcode STRING, with \xhh, octal and one-letter escapes. Empty if
// the quotes do not match.
std::optional<std::string> decode_quoted(std::string_view literal);

// Latin-1 with \uXXXX and \UXXXXXXXX, as in opcode UNICODE, to UTF-8. Empty if an escape is cut or beyond Unicode.
std::optional<std::string> decode_raw_unicode(std::string_view text);

// Each character of `utf8` as one byte, like Python's text.encode("latin1"). Empty if one is above U+00FF.
std::optional<std::string> encode_latin1(std::string_view utf8);

// A decimal integer with an optional sign and trailing L. Empty if it is not one or needs more than 64 bits.
std::optional<int64_t> parse_pickled_integer(std::string_view text);

}  // namespace headroom
