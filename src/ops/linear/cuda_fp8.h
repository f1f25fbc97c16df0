// The launcher of the device code that rounds bf16 matrices to fp8.
#pragma once

#include "ops/cuda/fp8.h"
#include "ops/cuda/launch.h"

namespace headroom::cuda {

// A bf16 matrix [rows, cols], both multiples of 16, to be written in the format as it is or transposed.
struct Fp8Matrix {
  const void* from = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  bool transposed = false;
  Fp8Format format = Fp8Format::e4m3;
  uint8_t* codes = nullptr;
  float* scale = nullptr;     // scale of the codes: value / code
  uint32_t* parts = nullptr;  // scratch: part_count numbers, one per block that searches for the largest element
  int64_t part_count = 0;
};

// The scale is the smallest power of two for which every finite element fits the format (within the normal numbers of
// f32). Codes are rounded to nearest even; elements that are not finite become NaN. The same bits on every device.
void launch_fp8_codes(const Fp8Matrix& matrix, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
