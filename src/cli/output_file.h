// A text for a file that the user names.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Writes `text` to the file, pipe or device. Throws Error(run) when not all of it got there.
void write_output(const std::string& path, std::string_view text);

}  // namespace headroom
