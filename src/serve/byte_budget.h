// A number of bytes shared by many users: taken before memory is allocated, returned by the holder's destructor on any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace headroom {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t bytes) : left_(bytes) {}
  // Returns false and takes nothing when fewer than `bytes` are left.
  bool take(int64_t bytes) {
    int64_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes)
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void give(int64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  int64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

// A share of a budget; moved together with the memory for which it was taken.
class HeldBytes {
 public:
  HeldBytes() = default;
  explicit HeldBytes(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  HeldBytes(HeldBytes&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  HeldBytes& operator=(HeldBytes&& other) noexcept {
    if (this == &other) return *this;
    release();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~HeldBytes() { release(); }

  bool add(int64_t bytes) {
    if (!budget_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  void shrink(int64_t bytes) {
    budget_->give(bytes);
    bytes_ -= bytes;
  }
  int64_t bytes() const { return bytes_; }

 private:
  void release() {
    if (budget_ && bytes_ > 0) budget_->give(bytes_);
    bytes_ = 0;
  }

  std::shared_ptr<ByteBudget> budget_;
  int64_t bytes_ = 0;
};

}  // namespace headroom
