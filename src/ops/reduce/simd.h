// Sums of squares on the best instruction set of the machine.
#pragma once

#include <cstdint>

namespace headroom {

// Sum of x[i]^2 in f64, in an order that depends only on count and the instruction set. One thread.
double sum_of_squares(const float* x, int64_t count);

}  // namespace headroom
