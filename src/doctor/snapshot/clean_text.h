// Names from a file that may hold anything, made fit for a terminal, JSON and SVG.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// Valid UTF-8 without control characters ('?' in their place), cut to at most `limit` bytes at a character's boundary.
std::string clean_text(std::string_view text, size_t limit = 400);

}  // namespace headroom::doctor
