// Where the tests' data is: tests/data_files, which every clone has, and beside the repository a larger set of the same
// layout, ../shared/data, where a machine has it. SOURCES.tsv says what each file is and under which licence.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::test {

// A file or folder of the set in the tree.
inline std::filesystem::path data_file(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/data_files" / name;
}

// `name` as it lies beside the repository: ../shared/NAME. What it names need not be there.
inline std::filesystem::path shared_file(const std::string& name) {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "../shared" / name;
}

// `name` in the tree and, where it is, in the larger set.
inline std::vector<std::filesystem::path> data_files(const std::string& name) {
  std::vector<std::filesystem::path> found{data_file(name)};
  if (const std::filesystem::path larger = shared_file("data/" + name); std::filesystem::exists(larger))
    found.push_back(larger);
  return found;
}

// Says which of them a test's parameter is.
inline bool is_in_tree(const std::filesystem::path& path) { return path.string().starts_with(data_file("").string()); }

// A parameter's name in a test's: its folder's, and the set.
inline std::string data_file_label(const std::filesystem::path& path) {
  std::string name = path.filename().string() + (is_in_tree(path) ? "" : "_shared");
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) c = '_';
  return name;
}

}  // namespace headroom::test
