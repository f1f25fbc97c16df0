// An open file with complete reads and writes, errors that name it, and control of its pages in the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace headroom {

// Owns a descriptor. Movable. read_at() may be called from several threads; the rest belongs to one thread.
class File {
 public:
  // Opens a regular file for reading. Throws Error(usage) if it is missing, unreadable or not a regular file.
  static File open(const std::filesystem::path& path);
  // Creates or truncates a file for writing (and reading back). Throws Error(run).
  static File create(const std::filesystem::path& path);
  // A new unnamed file in `directory`, for its owner alone (base/nameless_file.h). Throws Error(run).
  static File create_nameless(const std::filesystem::path& directory);

  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  bool is_open() const { return descriptor_ >= 0; }
  const std::filesystem::path& path() const { return path_; }
  // Size in bytes now. Throws Error(run).
  int64_t size() const;

  // Fills `into` from `offset` by pread. Throws Error(format) when the file ends before, Error(run) on an I/O error.
  void read_at(int64_t offset, std::span<std::byte> into) const;
  // Reads up to into.size() bytes at `offset`; returns how many, less only at the end of the file. Throws Error(run).
  int64_t read_some_at(int64_t offset, std::span<std::byte> into) const;
  // Writes all of `from` at `offset`. Throws Error(run) with the system's reason (disk full) and the file's name.
  void write_at(int64_t offset, std::span<const std::byte> from);
  // Tells the kernel that the cached pages wholly inside the range are not needed again. Never fails.
  void drop_cache(int64_t offset, int64_t bytes) const;
  // Starts and awaits the writing of the range, then drops it from the page cache: bounds the dirty pages of a stream.
  void write_back(int64_t offset, int64_t bytes);
  // fsync. Throws Error(run).
  void sync();
  // Closes it. Throws Error(run) when the system reports a late write error.
  void close();

 private:
  File(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_ = -1;
  std::filesystem::path path_;
};

// Whether the name exists, following links. Throws Error(usage) if the file system cannot tell: no permission on the
// path, an I/O error. A file that cannot be seen is never taken for missing.
bool is_there(const std::filesystem::path& path);

// The same of a regular file.
bool is_file_there(const std::filesystem::path& path);

// A whole regular file of at most `limit_bytes`. Throws Error(usage) when missing or unreadable, Error(format) when
// larger, Error(run) on an I/O error.
std::string read_text_file(const std::filesystem::path& path, int64_t limit_bytes = int64_t{8} << 20);

// A whole file of /proc or /sys, whose size is not known beforehand; empty if it cannot be read.
std::string read_system_file(const std::filesystem::path& path);

}  // namespace headroom
