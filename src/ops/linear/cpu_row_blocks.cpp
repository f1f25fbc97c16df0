// Products of blocks of sixteen rows: tiles of sixteen rows and five or six columns. The sixteen lanes of a sum
// (dot_bf16.h) are computed four at a time, so that the sums of a tile stay in registers.
#include "ops/linear/row_blocks.h"

#include "base/error.h"
#include "base/threads.h"
#include "ops/linear/dot_bf16.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

constexpr int kLanes = 4;                 // of a sum, computed at a time
constexpr int kPasses = 16 / kLanes;      // over the elements
constexpr int kStepWords = kLanes * 16;   // pairs of elements of a step of a pass, in x
constexpr int64_t kColumns = kBlockRows;  // that are transposed together

// Prefetches the weight's next columns into the second-level cache.
struct NextColumns {
  const char* at = nullptr;
  const char* end = nullptr;

  HEADROOM_AVX512_BF16 void step() {
    if (at >= end) return;
    _mm_prefetch(at, _MM_HINT_T1);
    _mm_prefetch(at + 64, _MM_HINT_T1);
    at += 128;
  }
};

// A block: pass, step, lane, row, pair.
HEADROOM_AVX512_BF16 void arrange_block(const uint16_t* x, int64_t rows, int64_t ins, int32_t* to) {
  const int64_t pass_words = ins / kDotStep * kStepWords;
  for (int64_t i = 0; i < ins; i += kDotStep, to += kStepWords) {
    __m512i block[16];
#pragma GCC unroll 16
    for (int row = 0; row < 16; ++row)
      block[row] = row < rows ? _mm512_loadu_si512(x + row * ins + i) : _mm512_setzero_si512();
    transpose16(block);
#pragma GCC unroll 16
    for (int lane = 0; lane < 16; ++lane)
      _mm512_store_si512(to + lane / kLanes * pass_words + lane % kLanes * 16, block[lane]);
  }
}

// sums[out] of one pass: the four lanes, added as store_sums() adds them. `x`: the pass's part of the block; `w`: the
// pass's first element of the first row.
template <int kOuts>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void add_pass(const int32_t* x, const uint16_t* w,
                                                                         int64_t ins, NextColumns& next, __m512* sums) {
  __m512 total[kOuts * kLanes];
#pragma GCC unroll 32
  for (int i = 0; i < kOuts * kLanes; ++i) total[i] = _mm512_setzero_ps();
  for (int64_t i = 0; i < ins; i += kDotStep, x += kStepWords) {
    next.step();
#pragma GCC unroll 4
    for (int lane = 0; lane < kLanes; ++lane) {
      const __m512bh left = as_bf16(_mm512_load_si512(x + lane * 16));
#pragma GCC unroll 8
      for (int out = 0; out < kOuts; ++out) {
        int32_t pair;
        __builtin_memcpy(&pair, w + out * ins + i + 2 * lane, sizeof pair);
        total[out * kLanes + lane] =
            _mm512_dpbf16_ps(total[out * kLanes + lane], left, as_bf16(_mm512_set1_epi32(pair)));
      }
    }
  }
#pragma GCC unroll 8
  for (int out = 0; out < kOuts; ++out) {
    const __m512* const lanes = total + out * kLanes;
    sums[out] = _mm512_add_ps(_mm512_add_ps(lanes[0], lanes[2]), _mm512_add_ps(lanes[1], lanes[3]));
  }
}

// sums[out][row] of a block and kOuts rows of w.
template <int kOuts>
HEADROOM_AVX512_BF16 void block_tile(const int32_t* x, const uint16_t* w, int64_t ins, NextColumns& next,
                                     __m512* sums) {
  static_assert(kPasses == 4);
  const int64_t pass_words = ins / kDotStep * kStepWords;
  __m512 passes[kPasses][kOuts];
  for (int pass = 0; pass < kPasses; ++pass)
    add_pass<kOuts>(x + pass * pass_words, w + pass * 2 * kLanes, ins, next, passes[pass]);
#pragma GCC unroll 8
  for (int out = 0; out < kOuts; ++out)
    sums[out] =
        _mm512_add_ps(_mm512_add_ps(passes[0][out], passes[1][out]), _mm512_add_ps(passes[2][out], passes[3][out]));
}

template <typename R>
HEADROOM_AVX512_BF16 void block_columns(const RowProduct& call, int64_t begin, int64_t end) {
  const auto* const blocks = static_cast<const int32_t*>(call.arranged);
  const int64_t column_bytes = kColumns * call.ins * 2;
  for (int64_t out = begin; out < end; out += kColumns) {
    const auto* const w = static_cast<const uint16_t*>(call.w) + out * call.ins;
    NextColumns next;
    if (out + 2 * kColumns <= end) {
      next.at = reinterpret_cast<const char*>(w) + column_bytes;
      next.end = next.at + column_bytes;
    }
    for (int64_t row = 0; row < call.rows; row += kBlockRows) {
      const int32_t* const x = blocks + row / 2 * call.ins;
      __m512 columns[kColumns];
      alignas(64) float sums[kBlockRows * kColumns];
      block_tile<6>(x, w, call.ins, next, columns);
      block_tile<5>(x, w + 6 * call.ins, call.ins, next, columns + 6);
      block_tile<5>(x, w + 11 * call.ins, call.ins, next, columns + 11);
      store_turned([&](int i) HEADROOM_AVX512_BF16 { return _mm512_castps_si512(columns[i]); }, sums);
      finish<R>(call, row, std::min(kBlockRows, call.rows - row), out, kColumns, sums, kColumns);
    }
  }
}

}  // namespace

void arrange_rows(const void* x, int64_t rows, int64_t ins, void* to) {
  rows = rows_in_blocks(rows);
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  parallel_for(blocks, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i * kBlockRows;
      arrange_block(static_cast<const uint16_t*>(x) + row * ins, rows - row, ins,
                    static_cast<int32_t*>(to) + row / 2 * ins);
    }
  });
}

ColumnRange block_range(DType y) { return y == DType::f32 ? block_columns<float> : block_columns<bfloat16>; }

#else

void arrange_rows(const void*, int64_t, int64_t, void*) { throw InternalError("no products of bf16 on this machine"); }
ColumnRange block_range(DType) { throw InternalError("no products of bf16 on this machine"); }

#endif

}  // namespace headroom
