// The lines of a file of any length, through a fixed buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/file.h"

namespace headroom {

class LineReader {
 public:
  // The longest line, without its end; longer ones are skipped.
  static constexpr size_t kLongest = 65535;

  // Throws Error(usage) when it is missing or unreadable.
  explicit LineReader(const std::filesystem::path& path) : file_(File::open(path)) {}

  // The next line, without its end and valid until the next call; false after the last one, which may lack its end. No
  // heap allocation. Throws Error(run) on an I/O error.
  bool next(std::string_view& line);

 private:
  void fill();

  File file_;
  std::array<char, kLongest + 1> buffer_;
  size_t begin_ = 0, end_ = 0;  // of the buffer's contents
  int64_t offset_ = 0;          // of the file, behind it
  bool ended_ = false;          // nothing is left in the file
  bool inside_ = false;         // the buffer begins inside a line that is skipped
};

}  // namespace headroom
