#include "device/disk/copy_thread.h"

#include <csignal>

namespace headroom {
namespace {

// Signals are for the training thread: threads started during this object's life block them.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

void carry_out(const DiskCopy& copy, const ScratchFile& file, BounceBuffers& buffers, size_t place) {
  const std::span<std::byte> memory(copy.memory, static_cast<size_t>(copy.bytes));
  buffers.begin(place);
  if (copy.to_disk)
    file.write(copy.offset, memory, buffers);
  else
    file.read(copy.offset, memory, buffers);
}

CopyThread::CopyThread(const ScratchFile& file, BounceBuffers& buffers) : file_(file), buffers_(buffers) {
  const WithoutSignals none;
  thread_ = std::thread([this] { run(); });
}

CopyThread::~CopyThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void CopyThread::queue(const DiskCopy& copy) {
  {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return queued_ - done_ < kPlaces; });
  }
  buffers_.mark(place(queued_));
  const std::lock_guard lock(mutex_);
  ring_[place(queued_)] = copy;
  ++queued_;
  work_.notify_one();
}

void CopyThread::wait_for(int64_t count) {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return done_ >= count; });
  if (failure_) std::rethrow_exception(failure_);
}

void CopyThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return ends_ || done_ < queued_; });
    if (ends_) return;
    const DiskCopy copy = ring_[place(done_)];
    if (!failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        carry_out(copy, file_, buffers_, place(done_));
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
    }
    ++done_;
    progress_.notify_one();
  }
}

}  // namespace headroom
