// Processes 32 numbers at a time: a vector of fp32 for the even ones and one for the odd ones.
#include "base/error.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/elementwise/simd.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {
namespace {

struct EvenOdd {
  __m512 even, odd;
};

HEADROOM_AVX512_BF16 inline EvenOdd load(const void* from, int64_t i, __mmask32 mask) {
  const __m512i bits = _mm512_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(from) + i);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u))))};
}

HEADROOM_AVX512_BF16 inline void store(const EvenOdd& values, void* to, int64_t i, __mmask32 mask) {
  const __m512i row = _mm512_permutexvar_epi16(interleaved_halves(), narrow_row(values.even, values.odd));
  _mm512_mask_storeu_epi16(static_cast<uint16_t*>(to) + i, mask, row);
}

// 1 / (1 + exp(-x)), 0 far below zero: the hardware's reciprocal estimate and one Newton step.
HEADROOM_AVX512_BF16 inline __m512 sigmoid(__m512 x) {
  const __m512 power = _mm512_mul_ps(x, _mm512_set1_ps(-1.44269504f));
  const __mmask16 near = _mm512_cmp_ps_mask(power, _mm512_set1_ps(126.0f), _CMP_NGT_UQ);
  const __m512 sum = _mm512_add_ps(fast_exp2(power), _mm512_set1_ps(1.0f));
  const __m512 guess = _mm512_rcp14_ps(sum);
  return _mm512_maskz_mul_ps(near, guess, _mm512_fnmadd_ps(sum, guess, _mm512_set1_ps(2.0f)));
}

HEADROOM_AVX512_BF16 inline __m512 product(__m512 gate, __m512 up) {
  return _mm512_mul_ps(_mm512_mul_ps(gate, sigmoid(gate)), up);
}

// The gradients with respect to gate and up.
struct Slopes {
  __m512 gate, up;
};
HEADROOM_AVX512_BF16 inline Slopes slopes(__m512 gate, __m512 up, __m512 gradient) {
  const __m512 s = sigmoid(gate), one = _mm512_set1_ps(1.0f);
  const __m512 slope = _mm512_mul_ps(s, _mm512_fmadd_ps(gate, _mm512_sub_ps(one, s), one));
  return {_mm512_mul_ps(_mm512_mul_ps(gradient, up), slope), _mm512_mul_ps(gradient, _mm512_mul_ps(gate, s))};
}

HEADROOM_AVX512_BF16 inline void forward(const ElementwiseArrays& arrays, int64_t i, __mmask32 mask) {
  const EvenOdd gate = load(arrays.in[0], i, mask), up = load(arrays.in[1], i, mask);
  store({product(gate.even, up.even), product(gate.odd, up.odd)}, arrays.out[0], i, mask);
}

HEADROOM_AVX512_BF16 inline void backward(const ElementwiseArrays& arrays, int64_t i, __mmask32 mask) {
  const EvenOdd gate = load(arrays.in[0], i, mask), up = load(arrays.in[1], i, mask), dh = load(arrays.in[2], i, mask);
  const Slopes even = slopes(gate.even, up.even, dh.even), odd = slopes(gate.odd, up.odd, dh.odd);
  store({even.up, odd.up}, arrays.out[1], i, mask);
  store({even.gate, odd.gate}, arrays.out[0], i, mask);
}

}  // namespace

HEADROOM_AVX512_BF16 void gated_silu_bf16_range(Formula formula, const ElementwiseArrays& arrays, int64_t begin,
                                                int64_t end) {
  for (; begin < end; begin += 32) {
    const __mmask32 mask = first_words(end - begin);
    formula == Formula::gated_silu_grad ? backward(arrays, begin, mask) : forward(arrays, begin, mask);
  }
}

}  // namespace headroom

#else

namespace headroom {
void gated_silu_bf16_range(Formula, const ElementwiseArrays&, int64_t, int64_t) {
  HR_CHECK(false, "the machine has no AVX512_BF16");
}
}  // namespace headroom

#endif
