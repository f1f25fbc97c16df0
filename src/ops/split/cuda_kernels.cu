// Device code of split and concat: every part in one pass over the joined array.
#include "ops/split/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename U, bool kJoin>
__global__ void column_parts(ColumnParts a) {
  const int64_t width = a.begin[a.parts] - a.begin[0];
  for (int64_t item = first_index(); item < a.rows * width; item += index_stride()) {
    const int64_t row = quotient(item, width), column = a.begin[0] + item - row * width;
    // Constant indices keep the arguments out of local memory.
    U* part = static_cast<U*>(a.part[0]);
    int64_t begin = a.begin[0], end = a.begin[1];
    HR_UNROLL for (int p = 1; p < kMostParts; ++p) {
      if (p < a.parts && column >= a.begin[p]) {
        part = static_cast<U*>(a.part[p]);
        begin = a.begin[p];
        end = a.begin[p + 1];
      }
    }
    U* const joined = static_cast<U*>(a.joined) + row * a.stride + column;
    const int64_t at = row * (end - begin) + column - begin;
    if (!kJoin)
      part[at] = *joined;
    else
      *joined = part ? part[at] : U{};
  }
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(U)                                      \
  template __global__ void column_parts<U, true>(ColumnParts); \
  template __global__ void column_parts<U, false>(ColumnParts);
HR_INSTANTIATE(uint16_t)
HR_INSTANTIATE(uint32_t)
using Pair = Pack<uint32_t, 2>;
using Quad = Pack<uint32_t, 4>;
HR_INSTANTIATE(Pair)
HR_INSTANTIATE(Quad)
#else
namespace {

template <typename U>
void launch_units(const ColumnParts& a, bool join, int multiprocessors, CudaStream stream) {
  const Grid grid = grid_over(a.rows * (a.begin[a.parts] - a.begin[0]), multiprocessors);
  launch(join ? column_parts<U, true> : column_parts<U, false>, grid, stream, a);
}

}  // namespace

void launch_column_parts(const ColumnParts& args, int unit, bool join, int multiprocessors, CudaStream stream) {
  if (unit == 16)
    launch_units<Pack<uint32_t, 4> >(args, join, multiprocessors, stream);
  else if (unit == 8)
    launch_units<Pack<uint32_t, 2> >(args, join, multiprocessors, stream);
  else if (unit == 4)
    launch_units<uint32_t>(args, join, multiprocessors, stream);
  else
    launch_units<uint16_t>(args, join, multiprocessors, stream);
}
#endif

}  // namespace headroom::cuda
