// Whether files were written since they were read.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace headroom {

// Names, sizes and times of change of the files in each folder, not below it; a file stands for itself. What cannot be
// read, or is missing, has no line.
std::string file_versions(std::span<const std::filesystem::path> places);

}  // namespace headroom
