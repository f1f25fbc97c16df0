// The scanner agrees with another JSON parser on what is JSON and on the strings of a row; bad rows are Errors.
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "data/json_scanner.h"
#include "data/row.h"

namespace {

// A rough check that nesting is within the scanner's limit: counts all opening brackets.
bool is_shallow(const std::string& text) {
  size_t opening = 0;
  for (const char c : text) opening += c == '[' || c == '{';
  return opening <= 64;
}

bool scanner_accepts(const std::string& text) {
  const headroom::RowBytes bytes{text};
  headroom::JsonScanner json(bytes);
  try {
    json.skip_value();
    json.expect_end();
    return true;
  } catch (const headroom::JsonProblem&) {
    return false;
  }
}

// nlohmann refuses numbers that overflow a double; the scanner just skips them.
bool has_exponent(const std::string& text) {
  return text.find_first_of("eE") != std::string::npos || text.size() > 300;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bool accepted = scanner_accepts(text);
  if (size >= 3 && text.substr(0, 3) == "\xef\xbb\xbf") return 0;  // the row source handles a byte order mark
  const bool has_zero = text.find('\0') != std::string::npos;      // the other parser takes a zero byte for the end
  if (is_shallow(text) && !has_exponent(text) && !has_zero && accepted != nlohmann::json::accept(text)) abort();
  const RowBytes bytes{text};
  try {
    const Row row = parse_row(bytes, {"fuzz", 1, 0});
    if (!accepted) abort();
    if (row.kind != RowKind::text || has_exponent(text) || !is_shallow(text)) return 0;
    RowText reader(row, row.text);
    std::string read;
    std::array<char, 7> piece;
    while (const size_t count = reader.read(piece)) read.append(piece.data(), count);
    if (nlohmann::json::parse(text)["text"].get<std::string>() != read) abort();
  } catch (const Error&) {
  }
  return 0;
}
