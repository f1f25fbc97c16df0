// The tests' data: tests/data_files, which every clone has, and next to the repository a larger set with the same
// layout, ../shared/data, on machines that have it. SOURCES.tsv lists the origin and licence of each file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::test {

// A file or folder of tests/data_files.
inline std::filesystem::path data_file(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/data_files" / name;
}

// ../shared/NAME, which need not exist.
inline std::filesystem::path shared_file(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared" / name;
}

// `name` in tests/data_files and, if it exists, in the larger set.
inline std::vector<std::filesystem::path> data_files(const std::string& name) {
  std::vector<std::filesystem::path> found{data_file(name)};
  if (const std::filesystem::path larger = shared_file("data/" + name); std::filesystem::exists(larger))
    found.push_back(larger);
  return found;
}

// Whether a test's parameter is in tests/data_files.
inline bool is_in_tree(const std::filesystem::path& path) { return path.string().starts_with(data_file("").string()); }

// The name of a parameter in test names: its folder's name, and the set.
inline std::string data_file_label(const std::filesystem::path& path) {
  std::string name = path.filename().string() + (is_in_tree(path) ? "" : "_shared");
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  return name;
}

}  // namespace headroom::test
