// Launchers of the device code of select_last and select_rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = row *index of x[seq, width]; the index is clamped.
void launch_select_last(FloatType type, const void* x, const int32_t* index, void* y, int64_t seq, int64_t width,
                        int multiprocessors, CudaStream stream);

// Row r of y [rows, width] = row index[r] of x [held, width]; an index outside is row 0.
void launch_select_rows(FloatType type, const void* x, const int32_t* index, void* y, int64_t rows, int64_t held,
                        int64_t width, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
