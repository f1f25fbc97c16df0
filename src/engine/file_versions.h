// Whether files were written since they were read.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace headroom {

// Names, numbers, sizes and times of the files in each folder, not below it, that a model, its tokenizer and its
// adapter are read from (by the endings of their names); a file stands for itself. What cannot be read, or is missing,
// has no line.
std::string file_versions(std::span<const std::filesystem::path> places);

}  // namespace headroom
