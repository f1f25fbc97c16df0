// At most sixteen rows of bf16 on AMX tiles, with a weight in blocks of codes: two tiles of it are decoded before the
// two that were decoded last are multiplied, so that a tile is not loaded right behind the stores that write it.
#include "base/block_codes.h"
#include "base/error.h"
#include "ops/linear/amx_columns.h"
#include "ops/linear/bf16_codes.h"
#include "ops/linear/coded_dot.h"

namespace headroom {

#ifdef HEADROOM_HAS_AMX
namespace {

constexpr int64_t kColumns = 2 * kTileLanes;

// The weight's rows from `out` on.
struct CodedColumns {
  const uint8_t* codes = nullptr;
  const float* scales = nullptr;
  int64_t row_bytes = 0, row_scales = 0;
  int64_t block = 0;
};

// Decodes 32 codes of a column; begin(), for all columns, comes before the first of them in a block.
template <int kBits>
class ColumnDecoder;

template <>
class ColumnDecoder<8> {
 public:
  HEADROOM_AMX explicit ColumnDecoder(CodeTable) {}
  HEADROOM_AMX_INLINE void begin(const CodedColumns&, int64_t, int64_t) {}
  HEADROOM_AMX_INLINE __m512i at(const CodedColumns& from, int64_t column, int64_t i) const {
    const __m512 scale = _mm512_set1_ps(from.scales[column * from.row_scales + i / from.block]);
    return decoded_bytes(from.codes + column * from.row_bytes + i, scale);
  }
};

template <>
class ColumnDecoder<4> {
 public:
  HEADROOM_AMX explicit ColumnDecoder(CodeTable codes) : values_(_mm512_loadu_ps(code_values(codes).data())) {}
  HEADROOM_AMX_INLINE void begin(const CodedColumns& from, int64_t columns, int64_t i) {
    const float* const scales = from.scales + i / from.block;
    for (int64_t column = 0; column < columns; ++column)
      tables_[column] = nibble_table(values_, scales[column * from.row_scales]);
  }
  HEADROOM_AMX_INLINE __m512i at(const CodedColumns& from, int64_t column, int64_t i) const {
    return decoded_nibbles(from.codes + column * from.row_bytes + i / 2, tables_[column]);
  }

 private:
  __m512 values_;
  __m512i tables_[kColumns];  // of the blocks that are being read
};

// Columns out ... of one tile of rows; `columns`: how many of them there are, at most kColumns.
template <typename R, int kBits>
HEADROOM_AMX void decode_columns(const RowProduct& call, const CodedColumns& from, int64_t out, int64_t columns,
                                 ColumnDecoder<kBits>& decoder) {
  constexpr int64_t kStepsOfLine = 64 * 8 / kBits / kTileStep;
  alignas(64) std::byte decoded[2][2 * amx::kTileBytes];
  alignas(64) float sums[2 * kTileSums];
  const TiledRows rows = tiled_rows_at(call, 0);
  const std::byte* x = rows.x;
  _tile_zero(0);
  _tile_zero(2);
  const auto decode = [&](int64_t i) HEADROOM_AMX {
    const int64_t part = i / kTileStep % kStepsOfLine;
    prefetch_columns(from.codes, from.row_bytes, columns, (i - part * kTileStep) * kBits / 8, part, kStepsOfLine);
    std::byte* const to = decoded[i / kTileStep % 2];
    if (i % from.block == 0) decoder.begin(from, columns, i);
#pragma GCC unroll 4
    for (int64_t column = 0; column < columns; ++column)
      _mm512_store_si512(to + column * 64, decoder.at(from, column, i));
  };
  decode(0);
  for (int64_t i = 0; i < call.ins; i += kTileStep, x += rows.step_bytes()) {
    if (i + kTileStep < call.ins) decode(i + kTileStep);
    amx::order_memory();
    const std::byte* const from_codes = decoded[i / kTileStep % 2];
    _tile_loadd(4, x, rows.pair_bytes);
    _tile_loadd(6, from_codes, 64);
    _tile_dpbf16ps(0, 6, 4);
    _tile_loadd(7, from_codes + amx::kTileBytes, 64);
    _tile_dpbf16ps(2, 7, 4);
  }
  _tile_stored(0, sums, rows.pair_bytes);
  _tile_stored(2, sums + kTileSums, rows.pair_bytes);
  amx::order_memory();
  for (int64_t tile = 0; tile * kTileLanes < columns; ++tile)
    finish_columns<R>(call, 0, call.rows, out + tile * kTileLanes, std::min(kTileLanes, columns - tile * kTileLanes),
                      sums + tile * kTileSums);
}

template <typename R, int kBits>
HEADROOM_AMX void coded_range_on_tiles(const RowProduct& call, const CodedMatrix& weight, int64_t begin, int64_t end) {
  const Storage& storage = weight.storage();
  ColumnDecoder<kBits> decoder(storage.codes);
  CodedColumns from{nullptr, nullptr, call.ins * kBits / 8, call.ins / storage.block, storage.block};
  amx::order_memory();
  enter_columns(call, kTileLanes);
  for (int64_t out = begin; out < end; out += kColumns) {
    from.codes = weight.codes() + out * from.row_bytes;
    from.scales = weight.scales() + out * from.row_scales;
    if (out == begin) prefetch_first(from.codes, from.row_bytes, std::min(kColumns, end - begin));
    decode_columns<R, kBits>(call, from, out, std::min(kColumns, end - out), decoder);
  }
  amx::leave_tiles();
}

template <typename R>
CodedRange range_of_bits(int bits) {
  return bits == 8 ? coded_range_on_tiles<R, 8> : coded_range_on_tiles<R, 4>;
}

}  // namespace

CodedRange coded_tile_range(const Storage& storage, DType y, int64_t rows, int64_t ins) {
  if (rows > kTileLanes || storage.scale_block != 0 || storage.block % kTileStep != 0 || ins % storage.block != 0)
    return nullptr;
  return y == DType::f32 ? range_of_bits<float>(storage.payload_bits) : range_of_bits<bfloat16>(storage.payload_bits);
}

#else

CodedRange coded_tile_range(const Storage&, DType, int64_t, int64_t) { throw InternalError("no AMX on this machine"); }

#endif

}  // namespace headroom
