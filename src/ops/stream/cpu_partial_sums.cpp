#include <algorithm>

#include "base/error.h"
#include "base/threads.h"
#include "ops/stream/partial_sums.h"

namespace headroom {

PartialSums::PartialSums(std::span<std::byte> scratch, std::span<const int64_t> dims, int64_t vectors)
    : base_(reinterpret_cast<float*>(scratch.data())),
      chunks_(row_chunks(dims).count()),
      vectors_(vectors),
      width_(dims.back()),
      stride_(align_up(dims.back() * int64_t{sizeof(float)}, 64) / int64_t{sizeof(float)}) {
  HR_CHECK(static_cast<int64_t>(scratch.size()) >= partial_sum_bytes(dims, vectors), "{} bytes of scratch, not {}",
           scratch.size(), partial_sum_bytes(dims, vectors));
}

void PartialSums::join(int64_t vector, bool overwrite, float* acc) const {
  parallel_for(width_, 64, [&](int64_t begin, int64_t end, int) {
    if (overwrite) std::fill(acc + begin, acc + end, 0.0f);
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const float* const sums = at(chunk, vector);
      for (int64_t j = begin; j < end; ++j) acc[j] += sums[j];
    }
  });
}

}  // namespace headroom
