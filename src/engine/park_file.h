// The park area on disk: blocks of parked sequences in an unnamed file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "device/disk/scratch_file.h"

namespace headroom {

// A slot is whole blocks of the disk, and passes through one buffer: buffer() is filled, then write() takes it to a
// slot; read() fills it from one. Used by one thread; no heap call after construction.
class ParkFile {
 public:
  // Makes the file with room for all slots, for blocks of so many bytes. Throws as ScratchFile.
  ParkFile(const std::filesystem::path& directory, int64_t slots, int64_t block_bytes);
  // Takes over a file.
  ParkFile(std::unique_ptr<ScratchFile> file, int64_t block_bytes);

  std::span<std::byte> buffer() { return buffer_.first(static_cast<size_t>(block_bytes_)); }
  // Throws Error(run) naming file and cause.
  void write(int32_t slot);
  void read(int32_t slot);

  static int64_t slot_bytes(int64_t block_bytes);
  // Heap, without the file.
  static int64_t memory_bytes(int64_t block_bytes);

 private:
  int64_t block_bytes_;
  std::unique_ptr<ScratchFile> file_;
  std::vector<std::byte> memory_;
  std::span<std::byte> buffer_;  // a slot in it, aligned
};

}  // namespace headroom
