// Elementwise updates with the machine's best instruction set. One thread.
#pragma once

#include <cstdint>

#include "ops/stream/row_codes.h"
#include "ops/stream/updated_weight.h"
#include "ops/update/formula.h"

namespace headroom {

struct UpdateArrays {
  UpdatedWeight weight;
  const float* g = nullptr;
  float* states[kUpdateStates] = {};  // of the formula
  // Instead of `states`, if they are kept in 8 bits: codes, and the largest magnitude of each block (blocks.h).
  uint8_t* codes[kUpdateStates] = {};
  float* absmax[kUpdateStates] = {};
};

// The scalars of one step, rounded to f32 once.
struct UpdateScalars {
  float clip = 1;
  float factors[kUpdateFactors] = {};  // of the formula
  uint64_t key = 0;                    // for stochastic rounding of a narrow weight (ops/stream/counter_bits.h)
};

// Elements [begin, end): reads the weight, g and the states once; writes the weight, the states and the copy once.
void update_range(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
                  int64_t end);
// The same with states in 8 bits; `begin` is the first element of a block.
void update_blocks(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
                   int64_t end);
// The same for rows [begin, end) of a weight in 8-bit codes, instead of `arrays.weight`. `row`: int8_row_bytes() of
// scratch.
void update_int8_rows(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars,
                      const Int8Rows& weight, float* row, int64_t begin, int64_t end);

}  // namespace headroom
