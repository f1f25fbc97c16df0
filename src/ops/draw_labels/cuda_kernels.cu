// Draws labels from rows of logits, with one block per row: the block sums the row in pieces, one per thread, and one
// thread walks through the piece in which the draw lies.
#include "ops/draw_labels/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/random.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kDrawThreads = 256;
constexpr int kNoLabel = -100;

HR_DEVICE float capped_logit(float logit, float cap) { return cap > 0.0f ? cap * tanhf(logit / cap) : logit; }

__global__ void keep_labels(const int32_t* labels, int32_t* drawn, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    drawn[i] = labels[i];
}

// The entry that the number u in (0, 1) draws, given the sums of the pieces.
HR_DEVICE int drawn_entry(const float* logits, const DeviceDraw& p, float largest, const double* sums, int64_t piece,
                          double u) {
  const int pieces = static_cast<int>((p.vocabulary + piece - 1) / piece);
  double total = 0;
  for (int i = 0; i < pieces; ++i) total += sums[i];
  double left = u * total;
  int at_piece = 0;
  while (at_piece + 1 < pieces && left >= sums[at_piece]) left -= sums[at_piece++];
  int64_t at = at_piece * piece;
  const int64_t end = at + piece < p.vocabulary ? at + piece : p.vocabulary;
  for (; at + 1 < end; ++at) {
    left -= static_cast<double>(expf(capped_logit(logits[at], p.softcap) - largest));
    if (left < 0) break;
  }
  return static_cast<int>(at);
}

__global__ __launch_bounds__(kDrawThreads) void draw_labels_of_rows(DeviceDraw p) {
  __shared__ float largest_slots[kWarp];
  __shared__ double sums[kDrawThreads];
  const int64_t row = p.first_row + blockIdx.x, position = row % p.sequence;
  const int64_t place = p.shift ? row + 1 : row;
  if (!(p.hyper[kDrawnLabels] > 0.0f)) return;
  if (p.shift && position == p.sequence - 1) return;
  if (p.labels[place] == kNoLabel) return;
  const float* const logits = p.logits + blockIdx.x * p.stride;
  const int thread = static_cast<int>(threadIdx.x);
  float largest = __uint_as_float(0xff800000u);
  for (int64_t i = thread; i < p.vocabulary; i += kDrawThreads) {
    const float logit = capped_logit(logits[i], p.softcap);
    largest = logit > largest ? logit : largest;
  }
  largest = reduce_block(largest, largest_slots, __uint_as_float(0xff800000u), Max());
  const int64_t piece = (p.vocabulary + kDrawThreads - 1) / kDrawThreads, begin = thread * piece;
  const int64_t end = begin + piece < p.vocabulary ? begin + piece : p.vocabulary;
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(expf(capped_logit(logits[i], p.softcap) - largest));
  sums[thread] = sum;
  __syncthreads();
  if (thread != 0) return;
  const uint64_t index = static_cast<uint64_t>(p.batch_row + row / p.sequence) << 32 | static_cast<uint64_t>(position);
  const uint32_t bits = counter_bits(block_key(step_key(p.hyper, p.key), index), index);
  const double u = (static_cast<double>(bits) + 0.5) / 4294967296.0;
  p.drawn[place] = drawn_entry(logits, p, largest, sums, piece, u);
}

#ifndef __CUDACC_RTC__
void launch_keep_labels(const int32_t* labels, int32_t* drawn, int64_t count, int multiprocessors, CudaStream stream) {
  launch(keep_labels, grid_over(count, multiprocessors), stream, labels, drawn, count);
}

void launch_draw_labels(const DeviceDraw& draw, CudaStream stream) {
  launch(draw_labels_of_rows, Grid{draw.rows, 1, 1, kDrawThreads, 0}, stream, draw);
}
#endif

}  // namespace headroom::cuda
