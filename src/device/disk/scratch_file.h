// A file of fixed size without a name: its bytes are the process's alone and free again when it ends, however it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "device/disk/bounce_buffers.h"

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

  // Exactly these bytes of the file; others of their blocks are left as they are. `into` and `from` lie wherever the
  // buffers' moves reach; one call at a time uses the buffers, whose moves are done on return. Throws Error(run) naming
  // place and cause.
  void read(int64_t offset, std::span<std::byte> into, BounceBuffers& buffers) const;
  void write(int64_t offset, std::span<const std::byte> from, BounceBuffers& buffers) const;

 private:
  // What of a range of bytes passes through one buffer.
  struct Piece {
    int64_t place = 0;  // in the file, of its first block
    size_t blocks = 0;  // bytes of its blocks
    size_t skip = 0;    // of them before its first byte
    size_t bytes = 0;
    int64_t done = 0;  // bytes of the range before it
  };
  // A range of bytes of the file, by way of buffers of `most` bytes.
  struct Pieces {
    int64_t offset = 0, bytes = 0, most = 0;
    size_t count() const;
    Piece at(size_t index) const;
  };

  void open();
  void reserve(int64_t bytes) const;
  void fill_with_zeros(int64_t bytes) const;
  void load(const Piece& piece, std::span<const std::byte> from, size_t index, BounceBuffers& buffers) const;
  void read_blocks(int64_t offset, std::span<std::byte> blocks) const;
  void write_blocks(int64_t offset, std::span<const std::byte> blocks) const;
  [[noreturn]] void fail(const char* what, int64_t offset, int64_t bytes, const char* why) const;

  std::filesystem::path directory_;
  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace headroom
