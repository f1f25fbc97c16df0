// Codes to bf16. For 4-bit codes, the 16 values of a block are rounded once and then looked up, 32 at a time.
#include "base/block_codes.h"
#include "base/error.h"
#include "ops/linear/bf16_codes.h"
#include "ops/linear/coded_tile.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

HEADROOM_AVX512_BF16 inline void decode_nibbles(const uint8_t* codes, int64_t count, __m512 values, float scale,
                                                uint16_t* to) {
  const __m512i table = nibble_table(values, scale);
  for (int64_t i = 0; i < count; i += 32) _mm512_storeu_si512(to + i, decoded_nibbles(codes + i / 2, table));
}

HEADROOM_AVX512_BF16 inline void decode_bytes(const uint8_t* codes, int64_t count, float scale, uint16_t* to) {
  const __m512 factor = _mm512_set1_ps(scale);
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) _mm512_storeu_si512(to + i, decoded_bytes(codes + i, factor));
  if (i == count) return;
  const __m512 rest = scaled_bytes(codes + i, factor);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), (__m256i)_mm512_cvtneps_pbh(rest));
}

// Calls decode(codes, scale, to) for each block; the codes of a block take `bytes` bytes.
template <typename Decode>
HEADROOM_AVX512_BF16 inline void each_block(const CodedMatrix& weight, int64_t begin, int64_t end, int64_t bytes,
                                            uint16_t* to, const Decode& decode) {
  // Local copies, which the stores to `to` cannot alias.
  const int64_t elements = weight.storage().block;
  const float* const scales = weight.scales();
  const uint8_t* codes = weight.codes() + begin * bytes;
  for (int64_t block = begin; block < end; ++block, codes += bytes, to += elements)
    decode(codes, scales ? scales[block] : weight.scale_of(block), to);
}

HEADROOM_AVX512_BF16 void decode_blocks(const CodedMatrix& weight, int64_t first, int64_t count, void* to) {
  const Storage storage = weight.storage();
  const int64_t size = storage.block, begin = first / size, end = (first + count) / size;
  const int64_t bytes = code_bytes(size, storage.payload_bits);
  auto* const words = static_cast<uint16_t*>(to);
  if (storage.payload_bits == 8)
    return each_block(weight, begin, end, bytes, words,
                      [=](const uint8_t* codes, float scale, uint16_t* at)
                          HEADROOM_AVX512_BF16 { decode_bytes(codes, size, scale, at); });
  const __m512 values = _mm512_loadu_ps(code_values(storage.codes).data());
  each_block(weight, begin, end, bytes, words,
             [=](const uint8_t* codes, float scale, uint16_t* at)
                 HEADROOM_AVX512_BF16 { decode_nibbles(codes, size, values, scale, at); });
}

}  // namespace

CodedTileDecoder bf16_coded_tile_decoder() { return decode_blocks; }

#else

CodedTileDecoder bf16_coded_tile_decoder() { throw InternalError("no codes to bf16 on this machine"); }

#endif

}  // namespace headroom
