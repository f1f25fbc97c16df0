// bf16-mixed: products in bf16 with fp32 accumulation, master weights, gradients, residual stream and loss in fp32.
//
// What: in the forward program, operands of products become bf16 (weights through a cast), and results that only
//   products and elementwise ops read are stored in bf16; norms compute in fp32 and store bf16:
//     h: f32 = rms_norm(x); y: f32 = linear(h, w)   becomes   h: bf16 = rms_norm(x); v: bf16 = cast(w); y: bf16 =
//     linear(h, v)
// Legal when: named (--precision bf16-mixed): it changes the arithmetic, like torch.autocast.
// Placed here because: before autodiff, which derives the backward pass from it: a cotangent has its value's dtype.
// Saves: half of most saved activations. Costs: bytes for bf16 copies of the weights when these are kept (2 per
//   parameter), which may need MORE memory than fp32 if the batch is small; else the time to round them where they
//   are multiplied.
// Manuals: M0 M1 M2 M3 M4 (T04).
#pragma once

#include "passes/precision.h"

namespace headroom {

inline constexpr PassInfo kBf16Mixed{"bf16-mixed", PassStage::model, TechniqueKind::lossy,
                                     "multiply in bf16, keep weights, gradients, sums and the loss in fp32"};
inline constexpr Precision kBf16MixedPrecision{"bf16-mixed", &kBf16Mixed, DType::bf16, true};

}  // namespace headroom
