// Device code of sequence lengths.
#include "ops/sequence/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

// A warp for each sequence.
__global__ void sequence_lengths(const int32_t* ids, int64_t seq, int32_t pad, int32_t* lengths) {
  const int32_t* const row = ids + blockIdx.x * seq;
  int32_t length = 1;
  for (int64_t i = threadIdx.x; i < seq; i += kWarp)
    if (row[i] != pad) length = static_cast<int32_t>(i) + 1;
  length = reduce_warp(length, Max());
  if (threadIdx.x == 0) lengths[blockIdx.x] = length;
}

#ifndef __CUDACC_RTC__
void launch_sequence_lengths(const int32_t* ids, int64_t batch, int64_t seq, int32_t pad, int32_t* lengths,
                             CudaStream stream) {
  Grid grid;
  grid.x = batch;
  grid.block = kWarp;
  launch(sequence_lengths, grid, stream, ids, seq, pad, lengths);
}
#endif

}  // namespace headroom::cuda
