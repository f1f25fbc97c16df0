// fp16-true: weights and activations in fp16; half the bytes of fp32.
//
// What: as bf16-true, with f16 in bf16's place:
//     h: f32 = rms_norm(x, n: f32); y: f32 = linear(h, w: f32)   becomes
//     m: f32 = cast(n: f16); h: f16 = rms_norm(x, m); y: f16 = linear(h, w: f16)
//   Trained weights are updated in fp32 registers and rounded stochastically (ops/update); sums of gradients and
//   optimizer states stay in fp32. The loss is scaled as in fp16-mixed.
// Legal when: named (--precision 16-true): it changes the arithmetic, and numbers above 65504 become infinite.
// Placed here because: after lora, whose adapters it leaves wide, and before autodiff, which derives the backward
//   pass from it: a cotangent has its value's dtype, a gradient is summed in fp32.
// Saves: half of the weights and of the activations. Costs: as fp16-mixed on a CPU and on a GPU.
// Manuals: M2 M3 M4 (T05).
#pragma once

#include "passes/precision.h"

namespace headroom {

inline constexpr PassInfo kFp16True{
    "fp16-true", PassStage::model, TechniqueKind::lossy,
    "keep weights and activations in fp16, with a loss scale; updates are rounded stochastically"};
inline constexpr Precision kFp16TruePrecision{"16-true", &kFp16True, DType::f16, false};

}  // namespace headroom
