// Decodes a weight in blocks of codes, for products with dense rows.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_coded_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "base/block_codes.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/coded_tile.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// The values of 4-bit codes, looked up per lane.
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

// Stores two vectors interleaved: even[0], odd[0], even[1], odd[1], ...
template <class D, typename T>
HWY_INLINE void store_pairs(D d, hn::Vec<D> even, hn::Vec<D> odd, T* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  alignas(64) float pairs[2 * hn::MaxLanes(D())];
  hn::StoreInterleaved2(even, odd, d, pairs);
  store(d, hn::Load(d, pairs), to);
  store(d, hn::Load(d, pairs + lanes), to + lanes);
}

template <typename T>
void decode_block(const uint8_t* codes, const Storage& storage, float block_scale, T* to) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, block_scale);
  if (storage.payload_bits == 8) {
    const hn::Rebind<int8_t, decltype(d)> d8;
    for (int64_t i = 0; i < storage.block; i += lanes) {
      const auto code = hn::PromoteTo(di, hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes) + i));
      store(d, hn::Mul(hn::ConvertTo(d, code), scale), to + i);
    }
    return;
  }
  const Table table(storage.codes);
  const hn::Rebind<uint8_t, decltype(d)> d8;
  for (int64_t i = 0; i < storage.block; i += 2 * lanes) {
    const auto pair = hn::PromoteTo(di, hn::LoadU(d8, codes + i / 2));
    const auto even = table.at(d, hn::ShiftRight<4>(pair)), odd = table.at(d, hn::And(pair, hn::Set(di, 15)));
    store_pairs(d, hn::Mul(even, scale), hn::Mul(odd, scale), to + i);
  }
}

template <typename T>
void decode_blocks(const CodedMatrix& weight, int64_t first, int64_t count, void* to) {
  const Storage& storage = weight.storage();
  T* at = static_cast<T*>(to);
  for (int64_t block = first / storage.block; block < (first + count) / storage.block; ++block, at += storage.block)
    decode_block(weight.codes() + code_bytes(block * storage.block, storage.payload_bits), storage,
                 weight.scale_of(block), at);
}

CodedTileDecoder decoder_of(DType dtype) {
  CodedTileDecoder decoder = nullptr;
  with_float(dtype, [&](auto type) { decoder = decode_blocks<decltype(type)>; });
  return decoder;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(decoder_of);

CodedTileDecoder coded_tile_decoder(DType dtype, const Capabilities& capabilities) {
  if (dtype == DType::bf16 && capabilities.has(kAvx512Bf16)) return bf16_coded_tile_decoder();
  return HWY_DYNAMIC_DISPATCH(decoder_of)(dtype);
}

}  // namespace headroom
#endif
