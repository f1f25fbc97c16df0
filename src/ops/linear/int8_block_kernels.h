// The steps of a product of 8-bit activations with a weight in blocks of integer codes (int8_blocks.h), for each
// instruction set. In memory that they share, the codes of a block follow the weight's: element by element for 8 bits;
// for 4 bits the even elements, which are the higher halves of bytes, then the odd ones.
#pragma once

#include <algorithm>

#include "ops/cpu/coded_matrix.h"
#include "ops/linear/int8_blocks.h"
#include "ops/linear/row_products.h"

namespace headroom {

// Codes of rows of x, and a scale for each block of them. A few rows are stored one after the other; otherwise tiles of
// 16 rows are, with scales [block, row]. Without VNNI codes are 16-bit numbers, in tiles [block, pair of codes, row];
// with it they are bytes (cpu_int8_block_vnni.cpp).
struct CodedRows {
  int16_t* codes = nullptr;
  float* scales = nullptr;
  int64_t rows = 0;
  int64_t blocks = 0;  // of a row

  bool few() const { return rows <= int8_blocks::kFewRows; }
};

// A weight [outs, ins] in blocks of integer codes.
struct CodedOuts {
  const uint8_t* codes = nullptr;
  const float* scales = nullptr;
  int64_t outs = 0;
  int64_t row_bytes = 0;
  int64_t row_scales = 0;  // scales of a row
  int64_t shared = 1;      // blocks of 32 codes for each scale
};

// kCount rows of a weight from `column` on. Without kWhole there may be fewer, and the last is repeated.
template <int64_t kCount, bool kWhole>
class OutRows {
 public:
  OutRows(const CodedOuts& weight, int64_t column)
      : codes_(weight.codes + column * weight.row_bytes),
        scales_(weight.scales + column * weight.row_scales),
        row_bytes_(weight.row_bytes),
        row_scales_(weight.row_scales),
        last_(weight.outs - 1 - column) {}

  const uint8_t* codes(int64_t i) const { return codes_ + row(i) * row_bytes_; }
  const float* scales(int64_t i) const { return scales_ + row(i) * row_scales_; }
  int64_t row_bytes() const { return row_bytes_; }
  // Where the row that is kCount behind row i has its `byte`.
  const uint8_t* next(int64_t i, int64_t byte) const { return codes_ + (kCount + i) * row_bytes_ + byte; }

 private:
  int64_t row(int64_t i) const { return kWhole ? i : std::min(i, last_); }

  const uint8_t* codes_;
  const float* scales_;
  int64_t row_bytes_, row_scales_, last_;
};

// The f32 sums of kPieceOuts columns: that of a row and a column is row * row_step + column * column_step behind
// `sums`.
struct BlockSums {
  float* sums = nullptr;
  int64_t row_step = 0, column_step = 0;
};

struct Int8BlockKernels {
  // Turns rows [first, first + count) of x, in elements of `dtype`, into codes: the rows of a tile, or a few rows. Rows
  // of a tile after the last have codes and scales of 0.
  void (*encode)(const void* x, DType dtype, int64_t first, int64_t count, const CodedRows& rows) = nullptr;
  // The sums of kPieceOuts columns from `column` on with all rows; those after the last column are any numbers.
  // `piece`: Sizes::piece_bytes() bytes of memory.
  void (*few)(const CodedRows& rows, const CodedOuts& weight, int64_t column, const BlockSums& out) = nullptr;
  void (*many)(const CodedRows& rows, const CodedOuts& weight, int64_t column, int16_t* piece,
               const BlockSums& out) = nullptr;
  // Writes `count` columns from `column` on of more than a few rows to y, with bias and residual; nullptr: there is no
  // faster way than element by element.
  void (*finish)(const RowProduct& product, DType y, int64_t column, int64_t count, const BlockSums& sums) = nullptr;
};

// Of this machine's vectors, for codes of `bits`; needs AVX2.
Int8BlockKernels int8_block_kernels(int bits);
// The same on bytes; needs AVX-512 VNNI.
Int8BlockKernels int8_block_vnni_kernels(int bits);
// The same with AMX for more than a few rows; needs AMX.
Int8BlockKernels int8_block_tile_kernels(int bits);

}  // namespace headroom
