// fp16-mixed: products in fp16 with fp32 accumulation, master weights, gradients, residual stream and loss in fp32.
//
// What: as bf16-mixed, with f16 in bf16's place:
//     h: f32 = rms_norm(x); y: f32 = linear(h, w)   becomes   h: f16 = rms_norm(x); v: f16 = cast(w); y: f16 =
//     linear(h, v)
//   The gradient of the loss is multiplied by the loss scale (train/loss_scaler.h), so that gradients in f16 stay above
//   2^-24; the update divides by it, and is skipped if a gradient is not finite.
// Legal when: named (--precision 16-mixed): it changes the arithmetic, as torch.autocast with a GradScaler does. An
//   update waits for the norm of all gradients: not with fused-optimizer.
// Placed here because: before autodiff, which derives the backward pass from it: a cotangent has its value's dtype.
// Saves: half of most saved activations. Costs: bytes for f16 copies of the weights when these are kept (2 per
//   parameter), which may need MORE memory than fp32 if the batch is small; a CPU converts every tile of an operand, a
//   GPU computes attention in fp32 arithmetic.
// Manuals: M0 M1 M2 M3 M4 (T04).
#pragma once

#include "passes/precision.h"

namespace headroom {

inline constexpr PassInfo kFp16Mixed{
    "fp16-mixed", PassStage::model, TechniqueKind::lossy,
    "multiply in fp16 with a loss scale, keep weights, gradients, sums and the loss in fp32"};
inline constexpr Precision kFp16MixedPrecision{"16-mixed", &kFp16Mixed, DType::f16, true};

}  // namespace headroom
