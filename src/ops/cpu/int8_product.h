// The loops around a kernel for products of 8-bit codes: B is packed whole, A in blocks of strips by every cell of the
// grid; a tile is computed over the whole depth, since sums of 32 bits are exact.
#pragma once

#include "ops/cpu/int8_matmul_scratch.h"
#include "ops/cpu/int8_strips.h"
#include "ops/cpu/matmul.h"

namespace headroom {

// c = sums scaled [+ bias] [+ addend] for a tile of rows x cols.
struct Int8Tile {
  const std::byte* a = nullptr;  // a packed strip
  const std::byte* b = nullptr;
  int64_t depth = 0;        // packed
  int32_t* sums = nullptr;  // of a whole tile
  const float* row_scales = nullptr;
  const float* col_scales = nullptr;
  void* c = nullptr;
  const void* addend = nullptr;
  int64_t c_stride = 0;  // elements
  DType dtype = DType::f32;
  const float* bias = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

// Packs the strips [first, last) of A or B to `to`, and writes the scales of their lanes.
using PackStrips = void (*)(const Int8Operand& operand, int64_t first, int64_t last, std::byte* to, float* scales);

// What an instruction set provides.
struct Int8Kernel {
  Int8Form form;
  PackStrips pack_a = nullptr;
  PackStrips pack_b = nullptr;
  void (*multiply)(const Int8Tile& tile) = nullptr;
  void (*enter)() = nullptr;  // once per thread before the first tile
  void (*leave)() = nullptr;
};

// Refuses other products, a depth beyond kInt8Depth, and less scratch than cut_int8() says.
MatmulOffer make_int8_product(const MatmulSpec& spec, const Int8Kernel& kernel, const DeviceFacts& facts,
                              int64_t booked);

}  // namespace headroom
