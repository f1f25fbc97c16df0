// The products of Muon's iteration, and its scratch.
#pragma once

#include "base/bfloat16.h"
#include "ops/cpu/matmul_scratch.h"
#include "ops/cpu/scratch.h"
#include "ops/muon/plan.h"

namespace headroom {

// All operands and results are bf16. A is the Gram matrix, a, b and c are the coefficients in plan.h.
struct MuonProducts {
  MatmulSpec gram;    // A: X X^T for a wide X, X^T X for a tall one
  MatmulSpec square;  // c A A + b A
  MatmulSpec move;    // B X + a X, or X B + a X, with B = `square`

  explicit MuonProducts(const MuonShape& shape) {
    gram.size = {shape.narrow(), shape.narrow(), shape.wide()};
    square.size = {shape.narrow(), shape.narrow(), shape.narrow()};
    move.size = {shape.rows, shape.cols, shape.narrow()};
    gram.a_transposed = shape.is_tall();
    gram.b_transposed = !shape.is_tall();
    square.addend = move.addend = true;
    for (MatmulSpec* spec : {&gram, &square, &move}) spec->operand = spec->result = DType::bf16;
  }
};

// Scratch for one matrix; the scratch of the products follows it.
struct MuonScratch {
  bfloat16* x = nullptr;
  bfloat16* next = nullptr;
  bfloat16* gram = nullptr;
  bfloat16* scaled = nullptr;  // c A
  bfloat16* sum = nullptr;     // b A + c A A
  float* norms = nullptr;      // parts of a sum of squares
  int64_t bytes = 0;

  static constexpr int64_t kNorms = 256;
  explicit MuonScratch(const MuonShape& shape, std::byte* base = nullptr) {
    Carver carver(base);
    for (bfloat16** matrix : {&x, &next}) *matrix = carver.take<bfloat16>(shape.elements());
    for (bfloat16** matrix : {&gram, &scaled, &sum}) *matrix = carver.take<bfloat16>(shape.narrow() * shape.narrow());
    norms = carver.take<float>(kNorms + 1);
    bytes = align_up(carver.used(), 256);
  }
};

}  // namespace headroom
