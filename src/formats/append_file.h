// A file of any length that is written sequentially through a fixed buffer.
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
  // Writes to a temporary file next to `path` until keep() renames it; without that the destructor removes it.
  explicit AppendFile(const std::filesystem::path& path);
  // Writes to an empty unnamed file.
  explicit AppendFile(File nameless) : file_(std::move(nameless)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void append(std::span<const std::byte> bytes);
  // Writes the buffer to the file.
  void flush();
  // Of all that was appended.
  int64_t size() const { return flushed_ + static_cast<int64_t>(used_); }
  // For reading flushed bytes, and for overwriting them.
  File& file() { return file_; }

  // Flushes, fsyncs and closes the file, and renames it to `path`: complete, or not at all.
  void keep();
  // Flushes the unnamed file and returns it.
  File take();

 private:
  std::filesystem::path path_;  // its final name, or empty
  File file_;
  std::array<std::byte, 65536> buffer_;
  size_t used_ = 0;
  int64_t flushed_ = 0, written_back_ = 0;
  bool kept_ = false;
};

}  // namespace headroom
