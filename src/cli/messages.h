// Errors and notes for people, on stderr.
#pragma once

#include <string_view>

namespace headroom {

// "error: MESSAGE" and the remedy below it.
void print_error(std::string_view message, std::string_view remedy);
void print_note(std::string_view text);

}  // namespace headroom
