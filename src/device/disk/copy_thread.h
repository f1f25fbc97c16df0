// A stream of copies between memory and a scratch file: a thread carries them out in the order in which they were
// queued.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "device/disk/scratch_file.h"

namespace headroom {

struct DiskCopy {
  std::byte* memory = nullptr;
  int64_t bytes = 0;
  int64_t offset = 0;  // in the file
  bool to_disk = false;
};

// Carries out the copy that was marked at this place. Throws Error(run).
void carry_out(const DiskCopy& copy, const ScratchFile& file, BounceBuffers& buffers, size_t place);

// Queueing and waiting take no memory. After a copy has failed, later ones are dropped, and every wait throws its
// error. Used by one thread.
class CopyThread {
 public:
  // Places of the queue; each copy marks its place in the buffers.
  static constexpr int64_t kPlaces = 256;

  // Both must outlive it.
  CopyThread(const ScratchFile& file, BounceBuffers& buffers);
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;
  // Waits for the copy in progress; queued ones are dropped.
  ~CopyThread();

  // Waits while the queue is full.
  void queue(const DiskCopy& copy);
  // Copies queued so far.
  int64_t queued() const { return queued_; }
  // Returns when the first `count` copies are done. Throws Error(run) when one of them failed.
  void wait_for(int64_t count);

 private:
  static size_t place(int64_t copy) { return static_cast<size_t>(copy % kPlaces); }
  void run();

  const ScratchFile& file_;
  BounceBuffers& buffers_;
  std::array<DiskCopy, kPlaces> ring_;
  int64_t queued_ = 0;  // written by the queueing thread while it holds the mutex
  int64_t done_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::thread thread_;
};

}  // namespace headroom
