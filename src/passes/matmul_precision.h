// matmul-precision: how the products of fp32 operands are computed.
//
// What: sets attribute "multiply" of every node with products of f32 operands: linear layers, experts, their gradients,
//   and the loss.
//     y = linear(h, w)   becomes   y = linear(h, w) {multiply = bf16x3}
//   highest: in fp32. high: as three bf16 products of split operands, which keep about 16 significant bits. medium:
//   operands rounded to bf16, 8 bits. Storage, sums and everything else stay fp32. torch.set_float32_matmul_precision
//   uses the same names.
// Legal when: named (--matmul-precision): it changes the arithmetic. A machine without bf16 tiles rounds the operands
//   in the same way and multiplies them in fp32.
// Placed here because: after autodiff, so that it covers the gradients' products too; before the passes on sizes and on
//   the order of computation, since scratch and time depend on it.
// Saves: no bytes. Costs: none with bf16 tiles, where it is faster; without them, high takes twice as long as fp32.
// fp8 is a separate setting, for bf16 operands (passes/fp8_products.h).
// Manuals: M4 (T04).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kMatmulPrecision{"matmul-precision", PassStage::schedule, TechniqueKind::lossy,
                                           "multiply fp32 matrices as one (medium) or three (high) bf16 products"};

inline constexpr std::string_view kMatmulPrecisionWords[] = {"highest", "high", "medium", "fp8"};

// `precision`: highest, high or medium. Acts on every program of the graph, but not on products of 8-bit codes
// (passes/int8_products.h).
void set_matmul_precision(Graph& graph, std::string_view precision);

}  // namespace headroom
