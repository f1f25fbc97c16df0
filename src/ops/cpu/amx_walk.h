// Prefetches memory while tiles are multiplied; nothing where HEADROOM_HAS_AMX stays undefined.
#pragma once

#include "ops/cpu/amx.h"
#include "ops/cpu/near_lines.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom::amx {

// Prefetches the lines of a region, a few at each of `steps`.
class Walk {
 public:
  Walk(const NearLines& region, int64_t steps)
      : at_(region.at), stride_(region.stride), lines_(region.lines), rows_(region.rows), left_(region.rows) {
    per_step_ = (region.count() + steps - 1) / steps;
  }

  // Without a region it does nothing. kWritten, kCache: as __builtin_prefetch() takes them.
  template <int kWritten, int kCache>
  HEADROOM_AMX_INLINE void step() {
    for (int64_t i = 0; i < per_step_ && left_ > 0; ++i) {
      __builtin_prefetch(at_ + 64 * line_, kWritten, kCache);
      if (++line_ < lines_) continue;
      line_ = 0;
      at_ += stride_;
      --left_;
    }
  }

  // Starts again, `bytes` bytes after the previous beginning.
  void go_on(int64_t bytes) {
    if (rows_ == 0) return;
    at_ += bytes - (rows_ - left_) * stride_;
    line_ = 0;
    left_ = rows_;
  }

 private:
  const std::byte* at_;
  int64_t stride_, lines_, rows_, left_;
  int64_t per_step_ = 0, line_ = 0;
};

}  // namespace headroom::amx

#endif
