// bf16-true: weights and activations in bf16; half the bytes of fp32.
//
// What: every weight is stored in bf16, and what is computed from them is too; matrices are read as they are, vectors
//   (norm weights, biases) are widened where they are used; sums inside an op are formed in fp32:
//     h: f32 = rms_norm(x, n: f32); y: f32 = linear(h, w: f32)   becomes
//     m: f32 = cast(n: bf16); h: bf16 = rms_norm(x, m); y: bf16 = linear(h, w: bf16)
//   What no update touches (evaluate, generate, serve) keeps vectors in fp32, as they are read, and adapters in bf16.
//   Adapters of LoRA stay in fp32 and are cast where they are multiplied. Trained weights are updated in fp32 registers
//   and rounded stochastically (ops/update); gradients and optimizer states stay in fp32.
// Legal when: named (--precision bf16-true): it changes the arithmetic.
// Placed here because: after lora, whose adapters it leaves wide, and before autodiff, which derives the backward
//   pass from it: a cotangent has its value's dtype, a gradient is summed in fp32.
// Saves: half of the weights and of the activations. Costs: nothing if bf16 is multiplied natively.
// Manuals: M2 M3 M4 (T05).
#pragma once

#include "passes/precision.h"

namespace headroom {

inline constexpr PassInfo kBf16True{"bf16-true", PassStage::model, TechniqueKind::lossy,
                                    "keep weights and activations in bf16; updates are rounded stochastically"};
inline constexpr Precision kBf16TruePrecision{"bf16-true", &kBf16True, DType::bf16, false};

}  // namespace headroom
