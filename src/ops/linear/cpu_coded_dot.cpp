// A vector of codes at a time becomes numbers in a register, is rounded to the dtype of x and multiplied with the rows
// of x, which are f32 here, in the order of cpu_dot.cpp.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_coded_dot.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/cache_control.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/code_lanes-inl.h"
#include "ops/linear/coded_dot.h"
#include "ops/linear/finish_tile-inl.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

constexpr int kReadRows = 4;  // with so few rows, reading the codes takes the time

// Columns of a tile of `rows` rows: the sums, and what is added to them, stay in registers.
template <typename T>
constexpr int outs_of(int rows) {
  if (rows > kReadRows) return 1;
  return rows == 1 && std::is_same_v<T, float> ? 4 : 2;
}

// The codes of a tile and their scales.
struct TileCodes {
  const uint8_t* codes;
  const float* scales;
  size_t row_bytes, blocks, block, block_bytes;  // blocks of a row
  const uint8_t* ahead;                          // the codes that are multiplied next
};

// Adds the products of one block of every row.
template <int kOuts, int kCount, typename T, class Codes>
HWY_INLINE void add_block(const Codes& codes, const TileCodes& w, size_t block, const float* x, int64_t ins,
                          CodeVector* total) {
  const CodeTag d;
  const auto lanes = hn::Lanes(d);
  const uint8_t* const from = w.codes + block * w.block_bytes;
  const uint8_t* const ahead = w.ahead + kOuts * block * w.block_bytes;
  if (kCount > kReadRows) hwy::Prefetch(ahead);
  CodeVector scale[kOuts];
  HWY_UNROLL(8)
  for (int out = 0; out < kOuts; ++out)
    scale[out] = block_scale<T>(w.scales[static_cast<size_t>(out) * w.blocks + block]);
  for (size_t i = 0; i < w.block; i += lanes) {
    if (kCount <= kReadRows) hwy::Prefetch(ahead + i * (kOuts * Codes::kBits) / 8);
    CodeVector right[kOuts];
    HWY_UNROLL(8)
    for (int out = 0; out < kOuts; ++out)
      right[out] = rounded_elements<T>(codes.at(from + static_cast<size_t>(out) * w.row_bytes, i, scale[out]));
    HWY_UNROLL(8)
    for (int row = 0; row < kCount; ++row) {
      const CodeVector left = load(d, x + row * ins + i);
      HWY_UNROLL(8)
      for (int out = 0; out < kOuts; ++out)
        total[row * kOuts + out] = hn::MulAdd(right[out], left, total[row * kOuts + out]);
    }
  }
}

// sums[row][out] for kCount rows of x and kOuts rows of the weight.
template <int kOuts, int kCount, typename T, class Codes>
HWY_INLINE void dot_codes(const Codes& codes, const TileCodes& w, const float* x, int64_t ins, float* sums) {
  const CodeTag d;
  CodeVector total[kOuts * kCount];
  HWY_UNROLL(8)
  for (CodeVector& sum : total) sum = hn::Zero(d);
  for (size_t block = 0; block < w.blocks; ++block)
    add_block<kOuts, kCount, T>(codes, w, block, x + block * w.block, ins, total);
  HWY_UNROLL(8)
  for (int of = 0; of < kOuts * kCount; ++of) sums[of] = hn::GetLane(hn::SumOfLanes(d, total[of]));
}

using FinishTile = void (*)(const RowProduct& call, int64_t row, int64_t rows, int64_t out, int64_t outs,
                            const float* sums);

// Columns begin .. end of kCount rows of x from `row` on.
template <int kCount, typename T, class Codes>
void columns(const RowProduct& call, const CodedMatrix& weight, int64_t row, int64_t begin, int64_t end,
             FinishTile finish) {
  constexpr int kOuts = outs_of<T>(kCount);
  const Storage& storage = weight.storage();
  const Codes codes(storage.codes);
  float sums[kOuts * kCount];
  const auto block = static_cast<size_t>(storage.block), blocks = static_cast<size_t>(call.ins) / block;
  const size_t block_bytes = block * Codes::kBits / 8, row_bytes = blocks * block_bytes;
  const auto tile = [&](int64_t from) {
    const auto out = static_cast<size_t>(from);
    const uint8_t* const at = weight.codes() + out * row_bytes;
    return TileCodes{at,
                     weight.scales() + out * blocks,
                     row_bytes,
                     blocks,
                     block,
                     block_bytes,
                     from + 2 * kOuts <= end ? at + kOuts * row_bytes : at};
  };
  const float* const x = static_cast<const float*>(call.x) + row * call.ins;
  for (; begin + kOuts <= end; begin += kOuts) {
    dot_codes<kOuts, kCount, T>(codes, tile(begin), x, call.ins, sums);
    finish(call, row, kCount, begin, kOuts, sums);
  }
  for (; begin < end; ++begin) {
    dot_codes<1, kCount, T>(codes, tile(begin), x, call.ins, sums);
    finish(call, row, kCount, begin, 1, sums);
  }
}

// Eight, six or up to four rows at once: each number is a kernel of its own.
template <typename T, class Codes>
void all_columns(const RowProduct& call, const CodedMatrix& weight, int64_t begin, int64_t end, FinishTile finish) {
  for (int64_t row = 0; row < call.rows;) {
    const int64_t left = call.rows - row, count = left >= 8 ? 8 : left >= 6 ? 6 : std::min<int64_t>(left, 4);
    if (count == 1) columns<1, T, Codes>(call, weight, row, begin, end, finish);
    if (count == 2) columns<2, T, Codes>(call, weight, row, begin, end, finish);
    if (count == 3) columns<3, T, Codes>(call, weight, row, begin, end, finish);
    if (count == 4) columns<4, T, Codes>(call, weight, row, begin, end, finish);
    if (count == 6) columns<6, T, Codes>(call, weight, row, begin, end, finish);
    if (count == 8) columns<8, T, Codes>(call, weight, row, begin, end, finish);
    row += count;
  }
}

template <typename T, typename R, class Codes>
void range(const RowProduct& call, const CodedMatrix& weight, int64_t begin, int64_t end) {
  all_columns<T, Codes>(call, weight, begin, end, finish_tile<R>);
}

CodedRange range_of([[maybe_unused]] const Storage& storage, [[maybe_unused]] const RowTypes& types) {
  CodedRange found = nullptr;
#if !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX2
  with_codes(storage, [&](auto codes) {
    with_floats(types.x, types.y,
                [&](auto x, auto y) { found = range<decltype(x), decltype(y), typename decltype(codes)::type>; });
  });
#endif
  return found;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range_of);

CodedRange coded_dot_range(const Storage& storage, const RowTypes& types, int64_t rows, int64_t ins,
                           const Capabilities& capabilities) {
  if (storage.scale_block != 0) return nullptr;
  if (types.x == DType::bf16 && capabilities.has(kAvx512Bf16)) return bf16_coded_dot_range(storage, types.y, rows, ins);
  constexpr int64_t kWidest = 16;  // lanes
  if (rows < 1 || rows > kCodedDotRows || storage.block % kWidest != 0) return nullptr;
  return HWY_DYNAMIC_DISPATCH(range_of)(storage, types);
}

}  // namespace headroom
#endif
