// Device code of sequence lengths, of the offsets by which padding shifts positions, and of the labels of next
// positions.
#include "ops/sequence/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

// One warp per sequence.
__global__ void sequence_lengths(const int32_t* ids, int64_t seq, int32_t pad, int32_t* lengths) {
  const int32_t* const row = ids + blockIdx.x * seq;
  int32_t length = 1;
  for (int64_t i = threadIdx.x; i < seq; i += kWarp)
    if (row[i] != pad) length = static_cast<int32_t>(i) + 1;
  length = reduce_warp(length, Max());
  if (threadIdx.x == 0) lengths[blockIdx.x] = length;
}

// One warp per sequence, 32 tokens at a time.
__global__ void padding_starts(const int32_t* ids, int64_t seq, int32_t pad, int32_t* starts) {
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x * seq;
  int32_t before = 0;
  for (int64_t base = 0; base < seq; base += kWarp) {
    const int64_t i = base + lane;
    const bool padding = i < seq && ids[row + i] == pad;
    const uint32_t found = reduce_warp(padding ? uint32_t{1} << lane : uint32_t{0}, Sum());
    int32_t own = before;
    for (int other = 0; other < kWarp; ++other) {
      const auto bit = static_cast<int32_t>(found >> other & 1u);
      before += bit;
      own += other < lane ? bit : 0;
    }
    if (i < seq) starts[row + i] = padding ? static_cast<int32_t>(i) + 1 : own;
  }
}

// One thread per position.
__global__ void next_labels(const int32_t* labels, int64_t batch, int64_t seq, int32_t* next) {
  for (int64_t item = first_index(); item < batch * seq; item += index_stride()) {
    const bool last = item - quotient(item, seq) * seq == seq - 1;
    next[item] = last ? -100 : labels[item + 1];
  }
}

#ifndef __CUDACC_RTC__
// One warp per row.
inline Grid grid_of_rows(int64_t batch) {
  Grid grid;
  grid.x = batch;
  grid.block = kWarp;
  return grid;
}

void launch_sequence_lengths(const int32_t* ids, int64_t batch, int64_t seq, int32_t pad, int32_t* lengths,
                             CudaStream stream) {
  launch(sequence_lengths, grid_of_rows(batch), stream, ids, seq, pad, lengths);
}

void launch_padding_starts(const int32_t* ids, int64_t batch, int64_t seq, int32_t pad, int32_t* starts,
                           CudaStream stream) {
  launch(padding_starts, grid_of_rows(batch), stream, ids, seq, pad, starts);
}

void launch_next_labels(const int32_t* labels, int64_t batch, int64_t seq, int32_t* next, int multiprocessors,
                        CudaStream stream) {
  launch(next_labels, grid_over(batch * seq, multiprocessors), stream, labels, batch, seq, next);
}
#endif

}  // namespace headroom::cuda
