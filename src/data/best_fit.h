// Rows into sequences of fixed capacity: best-fit-decreasing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// Puts items of `lengths` (each 1 to capacity) into bins: the longest first (equal ones in their order), each into the
// fullest bin that still holds it (of equally full ones the newest), else into a new one. At most 11/9 of the smallest
// number of bins, plus one (Johnson 1973). Fills bin_of, one bin per item, and returns the number of bins. Memory: 4
// bytes per item, per bin and per value of a length. O(items x capacity / 64).
int32_t best_fit_decreasing(std::span<const int32_t> lengths, int32_t capacity, std::span<int32_t> bin_of);

}  // namespace headroom
