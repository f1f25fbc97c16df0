// The parts of an Adafactor update with the machine's best instruction set. Each call runs on one thread.
#pragma once

#include <cstdint>

#include "ops/adafactor/plan.h"
#include "ops/adafactor/shape.h"
#include "ops/stream/updated_weight.h"

namespace headroom {

struct AdafactorArrays {
  UpdatedWeight weight;
  const float* g = nullptr;
  float* row_squares = nullptr;  // [all_rows], null for a vector
  float* col_squares = nullptr;  // [all_cols]
  float* moment = nullptr;       // null if there is none
  float* row_factors = nullptr;  // [all_rows]; scratch, like the next two
  float* col_factors = nullptr;  // [all_cols]
  float* row_sums = nullptr;     // [all_rows][2]
};

// Decays the squares of columns [begin, end) of a matrix, at most kAdafactorCols, and computes their factors.
constexpr int64_t kAdafactorCols = 512;
void adafactor_cols(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    int64_t matrix, int64_t begin, int64_t end);
// Decays the squares of a row of a matrix (not for a vector).
void adafactor_row(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step, int64_t row);
// Computes a row's sums of squares: of the update before clipping, and of the weight.
void adafactor_row_sums(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                        int64_t row);
// Updates a row of the weight. `rate`: the learning rate, times the parameter's scale if that is used; `scale`: the
// factor on the update, `rate` included; `key`: for stochastic rounding of a narrow weight.
struct AdafactorMove {
  float rate = 0;
  float scale = 0;
  uint64_t key = 0;
};
void adafactor_move(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    const AdafactorMove& move, int64_t row);

}  // namespace headroom
