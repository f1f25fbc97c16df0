// length-buckets: batches of rows of similar length, run at the length of a bucket rather than at the longest possible.
//
// What: rows of similar length come together (SampleGroups), and the training step and evaluation exist for some
//   shorter lengths too: the same instructions with smaller shapes at the same offsets.
// Legal when: named (--group-by-length true) or allowed (--allow length-buckets, data-order): other rows share a step.
//   Not with packing, which leaves no padding.
// Placed here because: the arena is that of the longest length; the buckets add no byte to it.
// Saves: the time of padding. Costs: the tables and prepared kernels of the further programs, in the process's part.
// Manuals: M1 (T11).
#pragma once

#include <cstdint>
#include <vector>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kLengthBuckets{"length-buckets", PassStage::schedule, TechniqueKind::data_order,
                                         "batches of rows of similar length, without most of the padding"};

// The lengths below `seq_length` that get programs: 1/8, 1/4, 1/2 and 3/4 of it in multiples of 16; ascending.
std::vector<int64_t> bucket_lengths(int64_t seq_length);

}  // namespace headroom
