// Decodes a weight in blocks of codes, for products with dense rows.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_coded_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "ops/cpu/capabilities.h"
#include "ops/linear/code_lanes-inl.h"
#include "ops/linear/coded_tile.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Rounded to T, unless storing it as To does that.
template <typename T, typename To>
HWY_INLINE CodeVector round_as(CodeVector value) {
  if constexpr (std::is_same_v<T, To>) {
    return value;
  } else {
    return rounded_elements<T>(value);
  }
}

template <typename T, typename To, class Codes>
void decode_blocks(const CodedMatrix& weight, int64_t first, int64_t count, void* to) {
  const CodeTag d;
  const size_t lanes = hn::Lanes(d);
  const Storage& storage = weight.storage();
  const Codes codes(storage.codes);
  const float* const scales = weight.scales();
  To* at = static_cast<To*>(to);
  for (int64_t block = first / storage.block; block < (first + count) / storage.block; ++block, at += storage.block) {
    const uint8_t* const from = weight.codes() + code_bytes(block * storage.block, storage.payload_bits);
    const CodeVector scale = block_scale<T>(scales ? scales[block] : weight.scale_of(block));
    for (size_t i = 0; i < static_cast<size_t>(storage.block); i += lanes)
      store(d, round_as<T, To>(codes.at(from, i, scale)), at + i);
  }
}

CodedTileDecoder decoder_of(const Storage& storage, DType dtype, bool wide) {
  CodedTileDecoder decoder = nullptr;
  with_codes(storage, [&](auto codes) {
    with_float(dtype, [&](auto type) {
      using Codes = typename decltype(codes)::type;
      using T = decltype(type);
      decoder = wide ? decode_blocks<T, float, Codes> : decode_blocks<T, T, Codes>;
    });
  });
  return decoder;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(decoder_of);

CodedTileDecoder coded_tile_decoder(const Storage& storage, DType dtype, bool wide, const Capabilities& capabilities) {
  if (dtype == DType::bf16 && !wide && capabilities.has(kAvx512Bf16)) return bf16_coded_tile_decoder();
  return HWY_DYNAMIC_DISPATCH(decoder_of)(storage, dtype, wide);
}

}  // namespace headroom
#endif
