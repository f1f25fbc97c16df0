// Device code of select_last and select_rows.
#include "ops/select_last/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T>
__global__ void select_last(const T* x, const int32_t* index, T* y, int64_t seq, int64_t width) {
  const T* const row = x + clamp_index(*index, seq) * width;
  for (int64_t i = first_index(); i < width; i += index_stride()) y[i] = row[i];
}

template <typename T>
__global__ void select_rows(const T* x, const int32_t* index, T* y, int64_t rows, int64_t held, int64_t width) {
  for (int64_t i = first_index(); i < rows * width; i += index_stride()) {
    const int64_t row = quotient(i, width), wanted = index[row];
    y[i] = x[(wanted >= 0 && wanted < held ? wanted : 0) * width + i - row * width];
  }
}

#ifdef __CUDACC_RTC__
template __global__ void select_last<float>(const float*, const int32_t*, float*, int64_t, int64_t);
template __global__ void select_last<Bf16>(const Bf16*, const int32_t*, Bf16*, int64_t, int64_t);
template __global__ void select_last<Half>(const Half*, const int32_t*, Half*, int64_t, int64_t);
template __global__ void select_rows<float>(const float*, const int32_t*, float*, int64_t, int64_t, int64_t);
template __global__ void select_rows<Bf16>(const Bf16*, const int32_t*, Bf16*, int64_t, int64_t, int64_t);
template __global__ void select_rows<Half>(const Half*, const int32_t*, Half*, int64_t, int64_t, int64_t);
#else
void launch_select_last(FloatType type, const void* x, const int32_t* index, void* y, int64_t seq, int64_t width,
                        int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(select_last<T>, grid_over(width, multiprocessors), stream, static_cast<const T*>(x), index,
           static_cast<T*>(y), seq, width);
  });
}

void launch_select_rows(FloatType type, const void* x, const int32_t* index, void* y, int64_t rows, int64_t held,
                        int64_t width, int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(select_rows<T>, grid_over(rows * width, multiprocessors), stream, static_cast<const T*>(x), index,
           static_cast<T*>(y), rows, held, width);
  });
}
#endif

}  // namespace headroom::cuda
