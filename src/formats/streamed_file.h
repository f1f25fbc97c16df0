// A file that is written from its beginning to its end, and is there under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "formats/file.h"

namespace headroom {

// Used by one thread. The bytes go to a temporary name beside the path until finish() renames it. Unless that returned,
// the destructor removes the partial file; so does a failed write.
class StreamedFile {
 public:
  // Creates the temporary file. Throws Error(run) when it cannot.
  explicit StreamedFile(const std::filesystem::path& path);
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;
  ~StreamedFile();

  // No heap allocation; dirty pages are written back every 8 MiB. Throws Error(run) naming the file and the reason
  // (disk full); the file is then gone.
  void append(std::span<const std::byte> bytes);
  // What has been appended.
  int64_t size() const { return end_; }
  // Until finish() or a failure.
  bool is_open() const { return file_.is_open(); }
  // fsync, close, rename to the path. Throws Error(run); the file is then gone.
  void finish();

 private:
  void abandon() noexcept;

  std::filesystem::path path_;
  File file_;
  int64_t end_ = 0;           // of what is written
  int64_t written_back_ = 0;  // up to here nothing is dirty
  bool finished_ = false;
};

}  // namespace headroom
