// Python's view of a text, on UTF-8: code points, Unicode white space, case. Bytes that are not UTF-8 count as one
// character each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/find_text.h"

namespace headroom::jinja {

// The character at `at`, which moves past it.
char32_t next_point(std::string_view text, size_t& at);
void append_point(std::string& text, char32_t point);
size_t count_points(std::string_view text);
// The byte where character `index` begins; text.size() when there are fewer.
size_t byte_of_point(std::string_view text, size_t index);
// Each character as a view.
std::vector<std::string_view> split_points(std::string_view text);
bool is_ascii(std::string_view text);

// str.isspace() of one character.
bool is_space(char32_t point);

enum class Side { left, right, both };
// str.strip, lstrip, rstrip; `characters`: those to strip, white space when missing.
std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> characters = std::nullopt);
// str.split and rsplit with a separator, which is not empty. most < 0: no limit.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t most, bool from_right);
// The same at runs of white space.
std::vector<std::string_view> split_space(std::string_view text, int64_t most, bool from_right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// Full case mappings of Unicode. Refuses the lower case of a capital sigma, which depends on its neighbours.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
// The first character in title case, the others in lower case.
std::string capitalize(std::string_view text);
// str.title(); refuses letters beyond ASCII.
std::string title(std::string_view text);
// Whether repr() shows the character as it is.
bool is_printable(char32_t point);

}  // namespace headroom::jinja
