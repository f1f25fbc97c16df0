// Device code of take_rows and put_rows.
#include "ops/rows/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename U, bool kPut>
__global__ void copy_rows(RowsOfSequences a) {
  for (int64_t item = first_index(); item < a.sequences * a.count; item += index_stride()) {
    const int64_t sequence = quotient(item, a.count);
    U* const whole = static_cast<U*>(a.whole) + sequence * a.stride + a.begin + item - sequence * a.count;
    U* const part = static_cast<U*>(a.part) + item;
    if (kPut)
      *whole = *part;
    else
      *part = *whole;
  }
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(U)                                       \
  template __global__ void copy_rows<U, true>(RowsOfSequences); \
  template __global__ void copy_rows<U, false>(RowsOfSequences);
HR_INSTANTIATE(uint8_t)
HR_INSTANTIATE(uint16_t)
HR_INSTANTIATE(uint32_t)
using Pair = Pack<uint32_t, 2>;
using Quad = Pack<uint32_t, 4>;
HR_INSTANTIATE(Pair)
HR_INSTANTIATE(Quad)
#else
namespace {

template <typename U>
void launch_units(const RowsOfSequences& a, bool put, int multiprocessors, CudaStream stream) {
  const Grid grid = grid_over(a.sequences * a.count, multiprocessors);
  launch(put ? copy_rows<U, true> : copy_rows<U, false>, grid, stream, a);
}

}  // namespace

void launch_rows(const RowsOfSequences& args, int unit, bool put, int multiprocessors, CudaStream stream) {
  if (unit == 16)
    launch_units<Pack<uint32_t, 4> >(args, put, multiprocessors, stream);
  else if (unit == 8)
    launch_units<Pack<uint32_t, 2> >(args, put, multiprocessors, stream);
  else if (unit == 4)
    launch_units<uint32_t>(args, put, multiprocessors, stream);
  else if (unit == 2)
    launch_units<uint16_t>(args, put, multiprocessors, stream);
  else
    launch_units<uint8_t>(args, put, multiprocessors, stream);
}
#endif

}  // namespace headroom::cuda
