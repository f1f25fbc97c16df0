// A run file: YAML with command-line options as keys, in kebab or snake case, one level deep.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct RunFileEntry {
  std::string key;                  // kebab case: "max-steps"
  std::vector<std::string> values;  // a scalar is one value, a list all of its values; as written, without quotes
  std::vector<int> value_lines;     // line of each value, from 1
  bool is_list = false;
  int line = 0;  // of the key, from 1
};

// Entries in file order. Throws Error(format) naming file:line for nested maps and lists, keys given twice (in either
// case), keys without a value, anchors and aliases, several documents, malformed YAML, and files above 1 MiB.
std::vector<RunFileEntry> parse_run_file(std::string_view text, const std::string& source);

// Reads the file. Throws Error(usage) if it is missing, else like parse_run_file. An empty file has no entries.
std::vector<RunFileEntry> read_run_file(const std::filesystem::path& path);

}  // namespace headroom
