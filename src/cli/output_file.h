// A text for a file that the user names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace headroom {

// Writes `text` to the file, pipe or device. Throws Error(run) when not all of it got there.
void write_output(const std::string& path, std::string_view text);

// The same of a page that is written whole or not at all. Throws Error(usage) for a folder.
void write_page(const std::filesystem::path& path, std::string_view page);

}  // namespace headroom
