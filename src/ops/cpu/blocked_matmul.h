// The loops around a register-tile kernel: operands are packed in blocks that stay in the L2 cache, a strip of A in the
// L1 cache; sums are kept in f32 until the last step of the depth. After Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication" (2008).
#pragma once

#include "ops/cpu/matmul.h"
#include "ops/cpu/near_lines.h"

namespace headroom {

// Strips of A or B to pack: `lanes` rows of A or columns of B from `lane`, over `depth` steps from `step`. A strip has
// as many lanes as a tile; the last one is padded with zeros.
struct PackCall {
  const void* from = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;        // elements between rows in memory
  bool depth_major = false;  // a row in memory is a step, else a lane
  int64_t lane = 0;
  int64_t lanes = 0;
  int64_t step = 0;
  int64_t depth = 0;
  std::byte* to = nullptr;
  int64_t strip_bytes = 0;
  DType rounds = DType::f32;  // f32 is rounded to this type by kernels that would otherwise pack it unchanged
};

// c = sum [+ bias] [+ addend] for a tile of rows x cols, rounded to c's dtype.
struct FinishCall {
  const float* sum = nullptr;
  int64_t sum_stride = 0;
  void* c = nullptr;
  const void* addend = nullptr;
  int64_t c_stride = 0;  // of c and addend, in elements
  DType dtype = DType::f32;
  const float* bias = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  // The call for tile `index` of a row, with sums at `sums`.
  FinishCall tile(int64_t index, int64_t tile_cols, const float* sums) const {
    FinishCall other = *this;
    other.sum = sums;
    const int64_t column = index * tile_cols, bytes = column * dtype_bytes(dtype);
    other.c = static_cast<std::byte*>(c) + bytes;
    if (addend) other.addend = static_cast<const std::byte*>(addend) + bytes;
    if (bias) other.bias = bias + column;
    other.cols = std::min(tile_cols, cols - column);
    return other;
  }
};

// A row of adjacent tiles: out = (init or 0) + a b over `depth` packed steps, plus p times the following `low_rank`
// steps of b. If `finish` is set, each tile is finished before the next one starts.
struct TileCall {
  const std::byte* a = nullptr;
  int64_t a_stride = 0;  // bytes between rows if A is read in place, 0 if packed
  const std::byte* b = nullptr;
  int64_t depth = 0;
  const std::byte* p = nullptr;  // packed
  int64_t low_rank = 0;
  const float* init = nullptr;  // nullptr: zero; same layout as `out`
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t tiles = 1;
  int64_t b_bytes = 0;                 // between the strips of B of adjacent tiles
  int64_t out_step = 0;                // elements between adjacent tiles of `out` and `init`; 0: all use the same place
  const FinishCall* finish = nullptr;  // of the first tile; `cols` counts all tiles
  // Prefetch hints, which a kernel may ignore: part of the next strip of A, for the whole row; memory written after the
  // first tile; memory only read then. For each later tile the last two are `ahead_step` bytes further on.
  NearLines ahead[3];
  int64_t ahead_step = 0;

  // One tile of the row.
  TileCall tile(int64_t index) const {
    TileCall other = *this;
    other.b += index * b_bytes;
    other.out += index * out_step;
    if (init) other.init += index * out_step;
    return other;
  }
};

// What an instruction set provides.
struct TileKernel {
  TileTraits traits;
  void (*pack_a)(const PackCall&) = nullptr;
  void (*pack_b)(const PackCall&) = nullptr;
  void (*multiply)(const TileCall&) = nullptr;
  void (*enter)() = nullptr;  // once per thread before the first tile
  void (*leave)() = nullptr;
};

// A kernel for the operands of a product, or the reason why the machine has none.
struct TileOffer {
  TileKernel kernel;
  std::string refusal;
};
// On AMX tiles, as make_amx_matmul.
TileOffer offer_amx_tiles(const MatmulSpec& spec, const DeviceFacts& facts);
// With Highway, as make_simd_matmul.
TileOffer offer_simd_tiles(const MatmulSpec& spec, const DeviceFacts& facts);

// Runs a product whose size is known only at run time; all sizes are at least 1. Scratch: as cut_matmul computes. Does
// not use the heap.
void run_blocked_matmul(const MatmulSpec& spec, const TileKernel& kernel, int threads,
                        const MatmulArguments& arguments);

// Refuses if more than `booked` bytes of scratch are needed.
MatmulOffer make_blocked_matmul(const MatmulSpec& spec, const TileKernel& kernel, const DeviceFacts& facts,
                                int64_t booked);

}  // namespace headroom
