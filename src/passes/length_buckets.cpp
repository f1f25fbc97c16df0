#include "passes/length_buckets.h"

namespace headroom {

std::vector<int64_t> bucket_lengths(int64_t seq_length) {
  std::vector<int64_t> lengths;
  for (int64_t eighths : {1, 2, 4, 6}) {
    const int64_t length = (seq_length * eighths / 8 + 15) / 16 * 16;
    if (length > 0 && length < seq_length && (lengths.empty() || length > lengths.back())) lengths.push_back(length);
  }
  return lengths;
}

}  // namespace headroom
