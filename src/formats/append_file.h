// A file that is written from front to end through a fixed buffer, however long it gets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "formats/file.h"

namespace headroom {

// Used by one thread. Dirty pages are written back every 8 MiB. Throws Error(run) as File does.
class AppendFile {
 public:
  // Writes beside `path` until keep() renames it; without that the destructor removes what was written.
  explicit AppendFile(const std::filesystem::path& path);
  // Writes to an empty file that has no name.
  explicit AppendFile(File nameless) : file_(std::move(nameless)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void append(std::span<const std::byte> bytes);
  // What is in the buffer goes to the file.
  void flush();
  // Of all that was appended.
  int64_t size() const { return flushed_ + static_cast<int64_t>(used_); }
  // For reading what was flushed, and for writing over it.
  File& file() { return file_; }

  // Flushes, fsyncs and closes the file, and renames it to `path`: whole, or not there at all.
  void keep();
  // Flushes the file without a name and gives it away.
  File take();

 private:
  std::filesystem::path path_;  // its name in the end, or empty
  File file_;
  std::array<std::byte, 65536> buffer_;
  size_t used_ = 0;
  int64_t flushed_ = 0, written_back_ = 0;
  bool kept_ = false;
};

}  // namespace headroom
