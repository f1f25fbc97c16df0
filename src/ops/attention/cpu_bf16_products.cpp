// Products of small bf16 matrices into fp32, on AMX tiles or with AVX512_BF16 dot products.
#include "ops/attention/bf16_products.h"

#include <cstddef>

#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/cpu/instruction_set.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

// A 32 x 32 block of c: tiles 0-3 hold the result, 4-5 the left operand, 6-7 the right one.
HEADROOM_AMX inline void amx_block(const Bf16Product& p, int64_t i, int64_t j) {
  float* c = p.c + i * p.c_row + j;
  const int64_t a_stride = p.a_row * 2;
  amx::load_sums(p.add ? c : nullptr, p.c_row);
  const uint16_t* a = p.a + i * p.a_row;
  const uint16_t* b = p.b + j / 32 * p.b_group;
  for (int64_t k = 0; k < p.depth; k += 32, a += p.a_step, b += 32 * 32) {
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, b, 64 * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 32, 64 * 2);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * p.a_row, a_stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  amx::store_sums(c, p.c_row);
}

HEADROOM_AMX void amx_multiply(const Bf16Product& product) {
  amx::order_memory();
  for (int64_t j = 0; j < product.columns; j += 32)
    for (int64_t i = 0; i < product.rows; i += 32) amx_block(product, i, j);
}

// An 8 x 32 block of c in registers.
HEADROOM_AVX512_BF16 inline void dot_block(const Bf16Product& p, int64_t i, int64_t j) {
  constexpr int kRows = 8;
  float* c = p.c + i * p.c_row + j;
  __m512 left[kRows], right[kRows];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    left[row] = p.add ? _mm512_loadu_ps(c + row * p.c_row) : _mm512_setzero_ps();
    right[row] = p.add ? _mm512_loadu_ps(c + row * p.c_row + 16) : _mm512_setzero_ps();
  }
  const uint16_t* a = p.a + i * p.a_row;
  const uint16_t* b = p.b + j / 32 * p.b_group;
  for (int64_t k = 0; k < p.depth; k += 2, b += 2 * 32) {
    const uint16_t* step = a + k / 32 * p.a_step + k % 32;
    const __m512bh b0 = as_bf16(_mm512_loadu_si512(b)), b1 = as_bf16(_mm512_loadu_si512(b + 32));
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      int32_t pair;
      __builtin_memcpy(&pair, step + row * p.a_row, sizeof(pair));
      const __m512bh element = as_bf16(_mm512_set1_epi32(pair));
      left[row] = _mm512_dpbf16_ps(left[row], element, b0);
      right[row] = _mm512_dpbf16_ps(right[row], element, b1);
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    _mm512_storeu_ps(c + row * p.c_row, left[row]);
    _mm512_storeu_ps(c + row * p.c_row + 16, right[row]);
  }
}

HEADROOM_AVX512_BF16 void dot_multiply(const Bf16Product& product) {
  for (int64_t j = 0; j < product.columns; j += 32)
    for (int64_t i = 0; i < product.rows; i += 8) dot_block(product, i, j);
}

}  // namespace

void Bf16Amx::enter() { amx::enter_tiles(); }
void Bf16Amx::leave() { amx::leave_tiles(); }
void Bf16Amx::multiply(const Bf16Product& product) { amx_multiply(product); }
bool Bf16Amx::usable() { return instruction_set() >= InstructionSet::amx; }

void Bf16Dot::multiply(const Bf16Product& product) { dot_multiply(product); }
bool Bf16Dot::usable() { return instruction_set() >= InstructionSet::avx512_bf16; }

}  // namespace headroom

#endif
