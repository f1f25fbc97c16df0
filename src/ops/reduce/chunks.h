// How sum_squares cuts its input: fixed chunks, so that the sum does not depend on the team's size.
#pragma once

#include <cstdint>

namespace headroom {

constexpr int64_t kSumChunk = int64_t{1} << 16;  // elements

inline int64_t sum_chunks(int64_t elements) { return (elements + kSumChunk - 1) / kSumChunk; }

// One f64 per chunk.
inline int64_t sum_squares_scratch(int64_t elements) { return sum_chunks(elements) * 8; }

}  // namespace headroom
