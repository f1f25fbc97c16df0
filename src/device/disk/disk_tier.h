// The disk as a tier below a device: a scratch file, addresses that stand for its bytes, and streams of copies between
// it and memory that the device's buffers reach.
#pragma once

#include <map>
#include <memory>

#include "device/disk/copy_thread.h"

namespace headroom {

class DiskTier {
 public:
  static constexpr size_t kStreams = 2;                      // beside stream 0: in and out
  static constexpr int64_t kBufferBytes = int64_t{1} << 20;  // of each buffer that the devices' copies pass through

  // What a stream has been given so far; nothing on those that do not copy to or from here.
  struct Mark {
    int stream = 0;
    int64_t copies = 0;
  };

  // Keeps its file in `directory`; nothing is made yet.
  explicit DiskTier(std::filesystem::path directory);
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;
  ~DiskTier();

  // Makes the file with room for an arena of `bytes`, or sees only whether it could be made when they are 0. Throws as
  // ScratchFile.
  void require_room(int64_t bytes);
  // The arena: addresses that no memory backs, at which an access is a fault and copy() finds the file's bytes.
  // `buffers` serve stream 0. Called once.
  std::byte* reserve(int64_t bytes, std::unique_ptr<BounceBuffers> buffers);
  bool holds(const std::byte* address) const { return address >= base_ && address < base_ + bytes_; }

  // A further stream of the device that copies to or from here, with buffers of its own, once there is room for an
  // arena. Stream 0 is the caller itself.
  void add_stream(int stream, std::unique_ptr<BounceBuffers> buffers);
  // Queues a copy of which one end lies in the arena; on stream 0 it is done on return.
  void copy(std::byte* to, const std::byte* from, int64_t bytes, int stream);
  Mark mark(int stream) const;
  // Returns when what was marked is done. Throws Error(run).
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
