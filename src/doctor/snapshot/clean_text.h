// Makes names from an untrusted file safe for a terminal, JSON and SVG.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// Valid UTF-8 without control characters ('?' in their place), cut at a character boundary to at most `limit` bytes.
std::string clean_text(std::string_view text, size_t limit = 400);

}  // namespace headroom::doctor
