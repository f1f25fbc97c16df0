// Dot products of few rows of x with the rows of a weight in blocks of codes.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_coded_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "base/block_codes.h"
#include "base/threads.h"
#include "hwy/cache_control.h"
#include "ops/cpu/capabilities.h"
#include "ops/cpu/coded_matrix.h"
#include "ops/linear/cpu_coded_rows.h"
#include "ops/linear/scratch.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kGroup = 32;  // elements; their even ones, then their odd ones lie side by side in x

// What the codes of 4 bits stand for, by lane.
class Table {
 public:
  explicit Table(CodeTable codes) : values_(code_values(codes).data()) {}
  template <class D, class VI>
  HWY_INLINE hn::Vec<D> at(D d, VI code) const {
    if constexpr (hn::MaxLanes(D()) >= 16) {
      return hn::TableLookupLanes(hn::LoadU(d, values_), hn::IndicesFromVec(d, code));
    } else if constexpr (hn::MaxLanes(D()) == 8) {
      const hn::RebindToSigned<D> di;
      const auto within = hn::IndicesFromVec(d, hn::And(code, hn::Set(di, 7)));
      const auto low = hn::TableLookupLanes(hn::LoadU(d, values_), within);
      const auto high = hn::TableLookupLanes(hn::LoadU(d, values_ + 8), within);
      return hn::IfThenElse(hn::RebindMask(d, hn::Gt(code, hn::Set(di, 7))), high, low);
    } else {
      return hn::GatherIndex(d, values_, code);
    }
  }

 private:
  const float* values_;
};

struct CodedRows {
  CodedMatrix weight;
  Storage storage;
  const float* x = nullptr;  // [count, ins], in groups where codes have 4 bits
  int64_t first = 0;         // the row of the call that is row 0 here
  int64_t count = 0;
  int64_t ins = 0;
};

// Adds the products of a block of 4-bit codes with the same part of kCount rows of x.
template <int kCount, class D, class V>
HWY_INLINE void add_halves(D d, const Table& table, const uint8_t* codes, int64_t elements, const float* x,
                           int64_t x_row, V* sums) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t group = 0; group < elements; group += kGroup)
    for (int64_t i = 0; i < kGroup / 2; i += lanes) {
      const auto pair = hn::PromoteTo(di, hn::LoadU(d8, codes + group / 2 + i));
      const auto even = table.at(d, hn::ShiftRight<4>(pair)), odd = table.at(d, hn::And(pair, hn::Set(di, 15)));
      for (int r = 0; r < kCount; ++r) {
        const float* of = x + r * x_row + group + i;
        sums[r] = hn::MulAdd(even, hn::LoadU(d, of), sums[r]);
        sums[r] = hn::MulAdd(odd, hn::LoadU(d, of + kGroup / 2), sums[r]);
      }
    }
}

// The same of codes of 8 bits, whole vectors of them.
template <int kCount, class D, class V>
HWY_INLINE void add_bytes(D d, const uint8_t* codes, int64_t elements, const float* x, int64_t x_row, V* sums) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<int8_t, D> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < elements; i += lanes) {
    const auto w = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes) + i)));
    for (int r = 0; r < kCount; ++r) sums[r] = hn::MulAdd(w, hn::LoadU(d, x + r * x_row + i), sums[r]);
  }
}

// kCount rows of x times kStreams rows of the weight, `apart` rows from one another: one stream alone gets little more
// than half of the memory's bandwidth.
template <int kStreams, int kCount, typename Put>
HWY_INLINE void dot_coded(const CodedRows& rows, const Table& table, int64_t first_row, int64_t out, int64_t apart,
                          const Put& put) {
  const hn::CappedTag<float, 16> d;
  const int64_t block = rows.storage.block, bits = rows.storage.payload_bits;
  hn::Vec<decltype(d)> totals[kStreams][kCount];
  for (auto& stream : totals)
    for (auto& total : stream) total = hn::Zero(d);
  for (int64_t at = 0; at < rows.ins; at += block)
    for (int s = 0; s < kStreams; ++s) {
      const int64_t element = (out + s * apart) * rows.ins + at;
      const uint8_t* codes = rows.weight.codes() + element * bits / 8;
      if (kStreams > 1) hwy::Prefetch(codes + 512);
      hn::Vec<decltype(d)> sums[kCount];
      for (auto& sum : sums) sum = hn::Zero(d);
      const float* x = rows.x + first_row * rows.ins + at;
      if (bits == 4)
        add_halves<kCount>(d, table, codes, block, x, rows.ins, sums);
      else
        add_bytes<kCount>(d, codes, block, x, rows.ins, sums);
      const auto scale = hn::Set(d, rows.weight.scale_of(element / block));
      for (int r = 0; r < kCount; ++r) totals[s][r] = hn::MulAdd(scale, sums[r], totals[s][r]);
    }
  for (int s = 0; s < kStreams; ++s)
    for (int r = 0; r < kCount; ++r)
      put(rows.first + first_row + r, out + s * apart, hn::GetLane(hn::SumOfLanes(d, totals[s][r])));
}

template <int kStreams, typename Put>
void dot_coded_range(const CodedRows& rows, int64_t begin, int64_t end, const Put& put) {
  const Table table(rows.storage.codes);
  const int64_t each = (end - begin) / kStreams;
  for (int64_t i = 0; i < each; ++i) {
    int64_t row = 0;
    if constexpr (HWY_TARGET <= HWY_AVX3)  // 32 registers
      for (; row + 4 <= rows.count; row += 4) dot_coded<kStreams, 4>(rows, table, row, begin + i, each, put);
    for (; row + 2 <= rows.count; row += 2) dot_coded<kStreams, 2>(rows, table, row, begin + i, each, put);
    if (row < rows.count) dot_coded<kStreams, 1>(rows, table, row, begin + i, each, put);
  }
  if constexpr (kStreams > 1) dot_coded_range<1>(rows, begin + kStreams * each, end, put);
}

// x as f32, in groups of even and odd elements where codes have 4 bits.
template <typename T>
void spread(const T* x, int64_t elements, bool in_groups, float* to) {
  if (!in_groups) {
    for (int64_t i = 0; i < elements; ++i) to[i] = static_cast<float>(x[i]);
    return;
  }
  for (; elements > 0; elements -= kGroup, x += kGroup, to += kGroup)
    for (int64_t i = 0; i < kGroup / 2; ++i) {
      to[i] = static_cast<float>(x[2 * i]);
      to[kGroup / 2 + i] = static_cast<float>(x[2 * i + 1]);
    }
}

template <typename T, typename R>
void run(const KernelCall& call, const RowsPlan& plan, const Storage& storage) {
  const int64_t outs = call.outputs[0].dims.back();
  auto* const x = reinterpret_cast<float*>(call.scratch.data());
  const CodedMatrix weight(call.inputs[1].data, storage, outs * plan.ins);
  const float* bias = plan.bias ? call.inputs[plan.bias].as<float>() : nullptr;
  const R* residual = plan.residual ? call.inputs[plan.residual].as<R>() : nullptr;
  R* y = call.outputs[0].as<R>();
  const auto put = [&](int64_t row, int64_t out, float sum) {
    if (bias) sum += bias[out];
    if (residual) sum += static_cast<float>(residual[row * outs + out]);
    y[row * outs + out] = static_cast<R>(sum);
  };
  for (int64_t first = 0; first < plan.count; first += kCodedRows) {
    const int64_t count = std::min(kCodedRows, plan.count - first);
    spread(call.inputs[0].as<T>() + first * plan.ins, count * plan.ins, storage.payload_bits == 4, x);
    const CodedRows rows{weight, storage, x, first, count, plan.ins};
    parallel_for(outs, 64, [&](int64_t begin, int64_t end, int) { dot_coded_range<4>(rows, begin, end, put); });
  }
}

void run_coded_rows(const KernelCall& call, const RowsPlan& plan, const Storage& storage) {
  const DType x = call.inputs[0].dtype, y = x == DType::f32 ? x : call.outputs[0].dtype;
  with_floats(x, y, [&](auto from, auto to) { run<decltype(from), decltype(to)>(call, plan, storage); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(run_coded_rows);

KernelOffer make_coded_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  const Storage& storage = spec.inputs[1].storage;
  constexpr int64_t kWidest = 16, kPair = 32;  // lanes; elements of a group
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > kCodedRows && !plan.any_count) return {nullptr, "more than eight rows"};
  if (!plan.out_in) return {nullptr, "rows of the weight are not dot products"};
  if (plan.ins % storage.block != 0 || storage.block % (storage.payload_bits == 4 ? kPair : kWidest) != 0)
    return {nullptr, "blocks do not fill rows and vectors"};
  const int64_t needed = coded_rows_bytes(plan.count, plan.ins);
  if (needed > spec.scratch_bytes)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", needed, spec.scratch_bytes)};
  return {kernel_of([plan, storage](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(run_coded_rows)
            (call, plan, storage);
          }),
          {}};
}

}  // namespace headroom
#endif
