// Products of small bf16 matrices into fp32, on AMX tiles or with AVX512_BF16 dot products.
//
// The right operand is stored in groups of 32 columns, as pairs: element (k, j) is b[j / 32 * b_group + (k / 2 * 32 + j
// % 32) * 2 + k % 2], the layout that both instruction sets need for a product with a row-major left operand. The left
// operand is stored in groups of 32 steps of the depth: element (i, k) is a[k / 32 * a_step + i * a_row + k % 32]. The
// rows of a group are contiguous, so that they do not compete for the same lines of the L1 cache.
#pragma once

#include <cstdint>

namespace headroom {

// c[rows x columns] [+]= a[rows x depth] b[depth x columns]. rows, columns and depth are multiples of 32; strides in
// elements.
struct Bf16Product {
  const uint16_t* a;
  int64_t a_row;
  int64_t a_step;
  const uint16_t* b;
  int64_t b_group;
  float* c;
  int64_t c_row;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  bool add;
};

// One instruction set: a thread calls enter() before its first product and leave() after its last.
struct Bf16Amx {
  static void enter();
  static void leave();
  static void multiply(const Bf16Product& product);
  // Whether the processor has it and the system lets this process use it (asks once). Thread-safe.
  static bool usable();
};
struct Bf16Dot {
  static void enter() {}
  static void leave() {}
  static void multiply(const Bf16Product& product);
  static bool usable();
};

}  // namespace headroom
