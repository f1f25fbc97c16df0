// Launchers of the rotary embedding's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// Rotates pairs (i, i + turned/2) of the first `turned` channels of each head of x[rows, heads * head_dim].
struct RotaryArgs {
  const void* x = nullptr;
  void* y = nullptr;                // may be x
  const float* table = nullptr;     // [table_rows, turned]: cosines, then sines
  const int32_t* offset = nullptr;  // added to the positions, read on the device; or null
  const int32_t* starts = nullptr;  // [rows], subtracted from the positions; or null
  int64_t table_rows = 0;           // positions are clamped to these rows
  int64_t rows = 0;
  int64_t seq = 0;          // row r has position r % seq
  int64_t offset_step = 0;  // 0: one offset; 1: one per `seq` rows
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t turned = 0;
  float sign = 1;  // of the sines; -1 rotates backwards
};

void launch_rotary(FloatType type, const RotaryArgs& args, int multiprocessors, CudaStream stream);

// table[p] = amplitude times the cosines, then the sines, of p * frequencies[0 .. half).
void launch_rope_table(const float* frequencies, int64_t half, float amplitude, int64_t positions, float* table,
                       int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
