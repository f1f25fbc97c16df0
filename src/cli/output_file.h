// Writes text to a file that the user names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace headroom {

// Writes `text` to the file, pipe or device. Throws Error(run) if not all of it was written.
void write_output(const std::string& path, std::string_view text);

// The same for a page, which is written completely or not at all. Throws Error(usage) for a folder.
void write_page(const std::filesystem::path& path, std::string_view page);

}  // namespace headroom
