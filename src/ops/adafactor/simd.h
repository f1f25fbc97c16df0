// The parts of an Adafactor update on the best instruction set of the machine. One thread each.
#pragma once

#include <cstdint>

#include "ops/adafactor/plan.h"
#include "ops/adafactor/shape.h"
#include "ops/stream/updated_weight.h"

namespace headroom {

struct AdafactorArrays {
  UpdatedWeight weight;
  const float* g = nullptr;
  float* row_squares = nullptr;  // [all_rows], null of a vector
  float* col_squares = nullptr;  // [all_cols]
  float* moment = nullptr;       // null where there is none
  float* row_factors = nullptr;  // [all_rows], scratch, as the rest
  float* col_factors = nullptr;  // [all_cols]
  float* row_sums = nullptr;     // [all_rows][2]
};

// Decays the squares of columns [begin, end) of a matrix and makes their factors, at most kAdafactorCols of them.
constexpr int64_t kAdafactorCols = 512;
void adafactor_cols(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    int64_t matrix, int64_t begin, int64_t end);
// Decays the squares of a row, which there are of a matrix.
void adafactor_row(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step, int64_t row);
// A row's sums of squares: of the update before it is clipped, and of the weight.
void adafactor_row_sums(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                        int64_t row);
// Updates a row of the weight. `rate` is of the scaled parameter, `scale` what the update is multiplied by, the rate
// included; `key` of the draws that round a narrow weight.
struct AdafactorMove {
  float rate = 0;
  float scale = 0;
  uint64_t key = 0;
};
void adafactor_move(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    const AdafactorMove& move, int64_t row);

}  // namespace headroom
