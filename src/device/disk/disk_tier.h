// The disk as a tier of a device whose memory is the host's: a scratch file, addresses that stand for its bytes, and
// streams of copies between it and memory.
#pragma once

#include <memory>
#include <vector>

#include "device/disk/copy_thread.h"

namespace headroom {

class DiskTier {
 public:
  // Keeps its file in `directory`; nothing is made yet.
  explicit DiskTier(std::filesystem::path directory);
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;
  ~DiskTier();

  // Makes the file with room for an arena of `bytes`, or sees only whether it could be made when they are 0. Throws as
  // ScratchFile.
  void require_room(int64_t bytes);
  // The arena: addresses that no memory backs, at which an access is a fault and copy() finds the file's bytes. Called
  // once.
  std::byte* reserve(int64_t bytes);
  bool reserved() const { return base_ != nullptr; }
  bool holds(const std::byte* address) const { return address >= base_ && address < base_ + bytes_; }

  // Memory for the host's access to the arena.
  std::span<std::byte> window() const;

  // A further stream, numbered from 1. Stream 0 is the caller itself.
  void add_stream();
  // Queues a copy of which one end lies in the arena and the other in memory; on stream 0 it is done on return.
  void copy(std::byte* to, const std::byte* from, int64_t bytes, int stream);
  // Copies queued on a stream so far, and the wait for the first `count` of them. Throws Error(run).
  int64_t queued(int stream) const;
  void wait_for(int stream, int64_t count);

 private:
  std::span<std::byte> buffer(size_t index) const;

  std::filesystem::path directory_;
  std::unique_ptr<ScratchFile> file_;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  std::byte* buffers_ = nullptr;  // the window, the caller's buffer, one for each stream
  std::vector<std::unique_ptr<CopyThread>> threads_;
};

}  // namespace headroom
