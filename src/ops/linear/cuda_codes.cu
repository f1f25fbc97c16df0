// Device code that decodes weights in blocks of codes.
#include "ops/linear/cuda_codes.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

#define HR_MAP HR_DEVICE
#include "base/dynamic_map-inl.h"
#undef HR_MAP

constexpr int kDecodeRun = 8;

// The values of codes, in shared memory.
struct CodeValues {
  float table[16];
  float map[256];  // for codes of scales
};

HR_DEVICE float scale_of_block(const CodedOperand& a, const CodeValues& values, int64_t block) {
  if (a.outer_scales == nullptr) return reinterpret_cast<const float*>(a.scales)[block];
  return values.map[a.scales[block]] * a.outer_scales[quotient(block, a.scale_block)] + a.outer_scales[a.outer_count];
}

HR_DEVICE float value_of_element(const CodedOperand& a, const CodeValues& values, int64_t i) {
  if (a.bits == 8) return static_cast<float>(static_cast<int8_t>(a.codes[i]));
  const int pair = a.codes[i / 2];
  return values.table[i % 2 == 0 ? pair >> 4 : pair & 15];
}

// Decodes a run of elements.
template <typename T>
struct RunDecoder {
  const CodedOperand& a;
  const CodeValues& values;
  T* to;

  template <typename Run>
  HR_DEVICE void operator()(Run, int64_t i) const {
    constexpr int kRun = Run::value;
    Floats<kRun> x;
    int64_t block = quotient(i, a.block);
    float scale = scale_of_block(a, values, block);
    HR_UNROLL for (int j = 0; j < kRun; ++j) {
      if (i + j == (block + 1) * a.block) scale = scale_of_block(a, values, ++block);
      x.at[j] = value_of_element(a, values, i + j) * scale;
    }
    store_floats(to + i, x);
  }
};

template <typename T>
__global__ void decode(CodedOperand a, T* to) {
  __shared__ CodeValues values;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  if (thread < 16) values.table[thread] = a.table[thread];
  if (a.outer_scales != nullptr)
    for (int code = thread; code < 256; code += threads)
      values.map[code] = static_cast<float>(value_of_code(true, code));
  __syncthreads();
  for_runs<kDecodeRun>(a.elements, RunDecoder<T>{a, values, to});
}

#ifdef __CUDACC_RTC__
template __global__ void decode<float>(CodedOperand, float*);
template __global__ void decode<Bf16>(CodedOperand, Bf16*);
template __global__ void decode<Half>(CodedOperand, Half*);
#else
void launch_decode(const CodedOperand& operand, FloatType type, void* values, int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(decode<T>, grid_over(operand.elements / kDecodeRun + 1, multiprocessors), stream, operand,
           static_cast<T*>(values));
  });
}
#endif

}  // namespace headroom::cuda
