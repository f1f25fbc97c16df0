// Products of 8-bit activations with a weight in blocks of integer codes: attribute "multiply" "int8-blocks" of linear
// and linear_group. Every 32 elements of a row of x become codes from -127 to 127 with a scale (ops/cpu/int8_codes.h).
// The 32 products with codes of the weight are summed as integers. That sum times the product of both scales is added
// to the row's f32 sum in one rounding, block after block. So every kernel gives the same bits, whatever the number of
// rows; each is that of the row alone.
#pragma once

#include "base/bytes.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/shape.h"

namespace headroom {

inline constexpr std::string_view kMultiplyInt8Blocks = "int8-blocks";

inline bool multiplies_int8_blocks(const Attrs& attrs) { return attrs.text("multiply") == kMultiplyInt8Blocks; }

constexpr int64_t kCodesBlock = 32;

// Whether a weight [outs, ins] that is stored like this has such products.
inline bool has_int8_blocks(const Storage& storage, int64_t ins) {
  return !storage.dense() && storage.codes == CodeTable::integer && storage.block % kCodesBlock == 0 &&
         ins % storage.block == 0;
}

namespace int8_blocks {

constexpr int64_t kFewRows = 4;     // rows that are multiplied with codes as they are stored
constexpr int64_t kTileRows = 16;   // more rows: those of a packed tile of x
constexpr int64_t kPieceOuts = 32;  // columns, and blocks of 32 codes, of a piece of the weight as 16-bit numbers: half
constexpr int64_t kPieceBlocks = 8;  // of an L1 cache
constexpr int64_t kPassRows = 240;   // rows in one pass over the weight

// The scratch of rows of x, and behind it that of each thread.
struct Sizes {
  int64_t rows = 0;  // of a pass
  int64_t ins = 0;

  int64_t blocks() const { return ins / kCodesBlock; }
  int64_t padded_rows() const { return align_up(rows, kTileRows); }
  int64_t code_bytes() const { return align_up(padded_rows() * ins * 2, 64); }
  int64_t row_bytes() const { return code_bytes() + align_up(padded_rows() * blocks() * 4, 64); }
  static constexpr int64_t piece_bytes() { return kPieceOuts * kPieceBlocks * kCodesBlock * 2; }
  int64_t sum_bytes() const { return padded_rows() * kPieceOuts * 4; }
  int64_t thread_bytes() const { return piece_bytes() + sum_bytes(); }
  int64_t total_bytes(int64_t threads) const { return row_bytes() + threads * thread_bytes(); }
};

inline Sizes sizes(int64_t rows, int64_t ins) { return {std::min(rows, kPassRows), ins}; }

}  // namespace int8_blocks

// Scratch of linear with these products. A machine without AVX2 needs none.
inline int64_t int8_blocks_scratch(const OpCall& call, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(call);
  return facts.capabilities.has(kAvx2) ? int8_blocks::sizes(shape.rows, shape.ins).total_bytes(facts.threads) : 0;
}

}  // namespace headroom
