// length-buckets: batches of rows of similar length, computed at the length of a bucket instead of the longest
// possible.
//
// What: rows of similar length are batched together (SampleGroups), and the training step and evaluation also exist for
//   some shorter lengths: the same instructions with smaller shapes at the same offsets.
// Legal when: named (--group-by-length true) or allowed (--allow length-buckets, data-order): other rows share a step.
//   Not with packing, which leaves no padding.
// Placed here because: the arena is that of the longest length; the buckets do not enlarge it.
// Saves: the time spent on padding. Costs: the tables and prepared kernels of the additional programs, outside the
//   arena.
// Manuals: M1 (T11).
#pragma once

#include <cstdint>
#include <vector>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kLengthBuckets{"length-buckets", PassStage::schedule, TechniqueKind::data_order,
                                         "batches of rows of similar length, without most of the padding"};

// The lengths below `seq_length` that get programs: 1/8, 1/4, 1/2 and 3/4 of it, rounded up to multiples of 16;
// ascending.
std::vector<int64_t> bucket_lengths(int64_t seq_length);

}  // namespace headroom
