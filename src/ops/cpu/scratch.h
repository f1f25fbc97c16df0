// Divides scratch into arrays; the function that carves a block also counts its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace headroom {

// Hands out 64-byte aligned pieces; without a base it only counts their bytes.
class Carver {
 public:
  explicit Carver(std::byte* base = nullptr) : base_(base) {}
  template <typename T>
  T* take(int64_t count) {
    T* piece = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += align_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

}  // namespace headroom
