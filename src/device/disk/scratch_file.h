// A nameless file of fixed size: only this process can access it, and its space is freed when the process ends, however
// it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "device/disk/bounce_buffers.h"

namespace headroom {

// Reads and writes bypass the page cache if the file system supports O_DIRECT. Otherwise each piece is written through
// and dropped from the cache at once, so that the cache holds at most one piece per thread. Thread-safe for accesses to
// different blocks.
class ScratchFile {
 public:
  // Creates the file in `directory` and reserves `bytes`, a multiple of kDiskBlockBytes, so that no later write finds
  // the disk full. Throws Error(usage) when the directory is missing, not writable or in memory (tmpfs), and
  // Error(does_not_fit) when the file system has less room.
  ScratchFile(const std::filesystem::path& directory, int64_t bytes);
  // Takes over the descriptor of a file in `directory`.
  ScratchFile(int descriptor, std::filesystem::path directory, bool direct)
      : directory_(std::move(directory)), descriptor_(descriptor), direct_(direct) {}
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  bool direct() const { return direct_; }

  // Access exactly these bytes of the file; the others of their blocks keep their values. `into` and `from` are memory
  // that the buffers' moves reach. One call at a time may use the buffers; its moves are done on return. Throws
  // Error(run) with position and cause.
  void read(int64_t offset, std::span<std::byte> into, BounceBuffers& buffers) const;
  void write(int64_t offset, std::span<const std::byte> from, BounceBuffers& buffers) const;

 private:
  // The part of a range that passes through one buffer.
  struct Piece {
    int64_t place = 0;  // offset of its first block in the file
    size_t blocks = 0;  // bytes of its blocks
    size_t skip = 0;    // those before its first byte of the range
    size_t bytes = 0;
    int64_t done = 0;  // bytes of the range before this piece
  };
  // A range of the file's bytes, cut into pieces for buffers of `most` bytes.
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
