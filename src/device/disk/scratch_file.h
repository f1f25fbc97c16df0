// A file of fixed size without a name: its bytes are the process's alone and free again when it ends, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace headroom {

// Reads and writes go around the page cache where the file system allows it (O_DIRECT). Elsewhere each piece is written
// through and dropped from the cache at once, so that at most a piece per thread is ever there. Thread-safe for
// accesses of different blocks.
class ScratchFile {
 public:
  // Makes the file in `directory` and reserves `bytes`, a multiple of kDiskBlockBytes: no later write can find the disk
  // full. Throws Error(usage) when the directory is missing, cannot be written or lies in memory (tmpfs), and
  // Error(does_not_fit) in bytes when its file system has less room.
  ScratchFile(const std::filesystem::path& directory, int64_t bytes);
  // Takes over the descriptor of a file in `directory`.
  ScratchFile(int descriptor, std::filesystem::path directory, bool direct)
      : directory_(std::move(directory)), descriptor_(descriptor), direct_(direct) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  bool direct() const { return direct_; }

  // Exactly these bytes of the file; others of their blocks are left as they are. `buffer` is whole blocks of memory
  // aligned to blocks, which one call at a time uses. Throws Error(run) naming place and cause.
  void read(int64_t offset, std::span<std::byte> into, std::span<std::byte> buffer) const;
  void write(int64_t offset, std::span<const std::byte> from, std::span<std::byte> buffer) const;

 private:
  void open();
  void reserve(int64_t bytes) const;
  void fill_with_zeros(int64_t bytes) const;
  void read_blocks(int64_t offset, std::span<std::byte> blocks) const;
  void write_blocks(int64_t offset, std::span<const std::byte> blocks) const;
  [[noreturn]] void fail(const char* what, int64_t offset, int64_t bytes, const char* why) const;

  std::filesystem::path directory_;
  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace headroom
