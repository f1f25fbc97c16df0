// Products of a few rows with a weight in blocks of codes, which are decoded in registers.
#pragma once

#include "ops/cpu/coded_matrix.h"
#include "ops/kernel.h"
#include "ops/linear/row_products.h"

namespace headroom {

constexpr int64_t kCodedDotRows = 8;  // at most

// Computes columns begin .. end of y = x w^T [+ bias] [+ residual] with `weight` as w; call.w is not read. The bits are
// those of dot_range() with the weight decoded by coded_tile_decoder(). No heap call; thread-safe across distinct
// columns. Rows of x that are widened (wide_rows.h) are f32.
using CodedRange = void (*)(const RowProduct& call, const CodedMatrix& weight, int64_t begin, int64_t end);

// The range for `rows` rows of `ins` elements, or nullptr if they need decoded rows: more than eight, scales that are
// codes themselves, or blocks that are not whole vectors. Needs AVX2.
CodedRange coded_dot_range(const Storage& storage, const RowTypes& types, int64_t rows, int64_t ins,
                           const Capabilities& capabilities);

// The same for x in bf16, with AVX-512 with bf16, at most four rows, and blocks of 32 that are a power of two or a row.
CodedRange bf16_coded_dot_range(const Storage& storage, DType y, int64_t rows, int64_t ins);

// The same for x in bf16 on AMX tiles (tile_rows.h), for at most sixteen rows and blocks of a multiple of 32 elements.
CodedRange coded_tile_range(const Storage& storage, DType y, int64_t rows, int64_t ins);

}  // namespace headroom
