// Lines of at most a given width for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

// Columns that UTF-8 text takes: one per code point.
size_t columns(std::string_view text);

// `text` cut at spaces into lines of at most `width` columns; words longer than that are cut. Control characters become
// spaces. With `most` > 0 at most so many lines, the last ending in "...".
std::vector<std::string> wrap(std::string_view text, size_t width, size_t most = 0);

// Adds `text` to `out` behind a label of `indent` columns, further lines indented; ends every line.
void add_block(std::string& out, std::string_view label, std::string_view text, size_t indent, size_t width = 80,
               size_t most = 0);

}  // namespace headroom::doctor
