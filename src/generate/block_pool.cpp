#include "generate/block_pool.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

BlockPool::BlockPool(int64_t blocks) : owners_(static_cast<size_t>(blocks)), free_(static_cast<size_t>(blocks)) {
  for (size_t i = 0; i < free_.size(); ++i) free_[i] = static_cast<int32_t>(free_.size() - 1 - i);
}

int32_t BlockPool::take() {
  HR_CHECK(!free_.empty(), "none of the {} blocks is free", size());
  const int32_t block = free_.back();
  free_.pop_back();
  owners_[static_cast<size_t>(block)] = 1;
  return block;
}

int32_t BlockPool::share(int32_t block) {
  int32_t& owners = owners_[static_cast<size_t>(block)];
  HR_CHECK(owners > 0, "block {} is free", block);
  return ++owners;
}

int32_t BlockPool::release(int32_t block) {
  int32_t& owners = owners_[static_cast<size_t>(block)];
  HR_CHECK(owners > 0, "block {} is free", block);
  if (--owners == 0) free_.push_back(block);
  return owners;
}

int64_t BlockPool::memory_bytes(int64_t blocks) { return 2 * blocks * static_cast<int64_t>(sizeof(int32_t)); }

void BlockPool::check() const {
  std::vector<bool> seen(owners_.size());
  for (const int32_t block : free_) {
    HR_CHECK(owners(block) == 0 && !seen[static_cast<size_t>(block)], "block {} is free with {} owners, or twice",
             block, owners(block));
    seen[static_cast<size_t>(block)] = true;
  }
  const auto without = std::count(owners_.begin(), owners_.end(), 0);
  HR_CHECK(without == free(), "{} blocks have no owner, {} are free", without, free());
}

}  // namespace headroom
