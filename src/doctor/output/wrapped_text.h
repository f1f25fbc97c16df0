// Wraps text to a terminal's width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

// Width of UTF-8 text in columns: one per code point.
size_t columns(std::string_view text);

// `text` broken at spaces into lines of at most `width` columns; longer words are cut. Control characters become
// spaces. With `most` > 0, at most that many lines, the last one ending in "...".
std::vector<std::string> wrap(std::string_view text, size_t width, size_t most = 0);

// Appends `text` to `out` after a label padded to `indent` columns, with further lines indented. Ends every line.
void add_block(std::string& out, std::string_view label, std::string_view text, size_t indent, size_t width = 80,
               size_t most = 0);

}  // namespace headroom::doctor
