// Numbers for the formulas in formulas-inl.h. Plain C++17, so that device code can include it.
#pragma once

#include <cstdint>

namespace headroom {

// Formulas whose result may have another type than their operand: X(number, type in formulas-inl.h).
#define HR_CONVERTING_FORMULAS(X) \
  X(copy, Copy)                   \
  X(drop, Drop)

// All formulas. The gradient of a formula follows it.
#define HR_FORMULAS(X)                           \
  X(gelu, Activated<GeluExact>)                  \
  X(gelu_grad, ActivatedGrad<GeluExact>)         \
  X(gelu_tanh, Activated<GeluByTanh>)            \
  X(gelu_tanh_grad, ActivatedGrad<GeluByTanh>)   \
  X(gated_silu, Gated<Silu>)                     \
  X(gated_silu_grad, GatedGrad<Silu>)            \
  X(gated_gelu, Gated<GeluExact>)                \
  X(gated_gelu_grad, GatedGrad<GeluExact>)       \
  X(gated_gelu_tanh, Gated<GeluByTanh>)          \
  X(gated_gelu_tanh_grad, GatedGrad<GeluByTanh>) \
  X(softcap, Softcap)                            \
  X(softcap_grad, SoftcapGrad)                   \
  X(scale, Scale)                                \
  HR_CONVERTING_FORMULAS(X)

enum class Formula {
#define HR_FORMULA_NUMBER(number, type) number,
  HR_FORMULAS(HR_FORMULA_NUMBER)
#undef HR_FORMULA_NUMBER
};

constexpr int kFormulaInputs = 3, kFormulaOutputs = 2;  // at most

// The constant that an op multiplies or divides by (factor, cap), in the arithmetic of its kernel.
template <typename Real>
struct FormulaConstant {
  Real value = 0;
  Real inverse = 0;
};

// The random bits of a formula that draws. Element i of a call is number first + i of the step's global batch.
struct FormulaDraws {
  uint64_t key = 0;  // step_key() of ops/stream/counter_bits.h
  int64_t first = 0;
  uint32_t below = 0;  // an element is dropped if the top 31 of its bits are below this
};

}  // namespace headroom
