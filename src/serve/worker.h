// A thread that runs jobs in order, with a bounded queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace headroom {

class Worker {
 public:
  explicit Worker(size_t most_waiting) : most_waiting_(most_waiting), thread_([this] { work(); }) {}
  ~Worker() { stop(); }

  // Returns false when too many jobs wait, or when the worker has been stopped. From any thread.
  bool add(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || jobs_.size() >= most_waiting_) return false;
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
    return true;
  }
  // Waits for the current job; waiting jobs are dropped.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      jobs_.clear();
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
      if (stopped_) return;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
    }
  }

  size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopped_ = false;
  std::thread thread_;  // declared last, because it uses the others
};

}  // namespace headroom
