// A file that is written from start to end and appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "formats/file.h"

namespace headroom {

// Used by one thread. Bytes go to a temporary name in the same directory until finish() renames it. Without a
// successful finish() the destructor removes the partial file; so does a failed write.
class StreamedFile {
 public:
  // Creates the temporary file. Throws Error(run) if it cannot.
  explicit StreamedFile(const std::filesystem::path& path);
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;
  ~StreamedFile();

  // No heap allocation; dirty pages are written back every 8 MiB. Throws Error(run) naming the file and the reason
  // (disk full); the file is then removed.
  void append(std::span<const std::byte> bytes);
  // Bytes appended so far.
  int64_t size() const { return end_; }
  // True until finish() or a failure.
  bool is_open() const { return file_.is_open(); }
  // fsync, close, rename to the path. Throws Error(run); the file is then removed.
  void finish();

 private:
  void abandon() noexcept;

  std::filesystem::path path_;
  File file_;
  int64_t end_ = 0;           // end of the written bytes
  int64_t written_back_ = 0;  // pages before this offset are not dirty
  bool finished_ = false;
};

}  // namespace headroom
