// The disk as a tier below a device: a scratch file, addresses that stand for its bytes, and streams of copies to and
// from the memory that the device's buffers reach.
#pragma once

#include <map>
#include <memory>

#include "device/disk/copy_thread.h"

namespace headroom {

class DiskTier {
 public:
  static constexpr size_t kStreams = 2;                      // besides stream 0: in and out
  static constexpr int64_t kBufferBytes = int64_t{1} << 20;  // of each buffer for the devices' copies

  // The copies queued on a stream so far; empty for streams that do not copy to or from the disk.
  struct Mark {
    int stream = 0;
    int64_t copies = 0;
  };

  // The file will be in `directory`; it is not created yet.
  explicit DiskTier(std::filesystem::path directory);
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;
  ~DiskTier();

  // Creates the file with room for an arena of `bytes`; for 0 bytes only checks that it could be created. Throws as
  // ScratchFile.
  void require_room(int64_t bytes);
  // The arena: addresses that no memory backs, for which copy() uses the file's bytes; any other access is a fault.
  // `buffers` are for stream 0. Called once.
  std::byte* reserve(int64_t bytes, std::unique_ptr<BounceBuffers> buffers);
  bool holds(const std::byte* address) const { return address >= base_ && address < base_ + bytes_; }

  // Adds another stream that copies to or from the disk, with its own buffers. There must be room for an arena. On
  // stream 0 the caller copies itself.
  void add_stream(int stream, std::unique_ptr<BounceBuffers> buffers);
  // Queues a copy with one end in the arena; on stream 0 it is done on return.
  void copy(std::byte* to, const std::byte* from, int64_t bytes, int stream);
  Mark mark(int stream) const;
  // Returns when the marked copies are done. Throws Error(run).
  void wait(const Mark& mark);
  void synchronize(int stream) { wait(mark(stream)); }

 private:
  struct Stream {
    std::unique_ptr<BounceBuffers> buffers;
    std::unique_ptr<CopyThread> thread;
  };

  std::filesystem::path directory_;
  std::unique_ptr<ScratchFile> file_;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
  std::unique_ptr<BounceBuffers> buffers_;  // of stream 0
  std::map<int, Stream> streams_;           // the others
};

}  // namespace headroom
