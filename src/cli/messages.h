// Errors and notes for people, on stderr.
#pragma once

#include <string_view>

namespace headroom {

// Writes the text unchanged. A stderr that is closed or full is not an error: nobody reads it, and the work continues.
void write_stderr(std::string_view text);

// "error: MESSAGE" and the remedy below it, after all that stdout has.
void print_error(std::string_view message, std::string_view remedy);
void print_note(std::string_view text);
void print_remark(std::string_view text);  // a note; nothing for an empty one

}  // namespace headroom
