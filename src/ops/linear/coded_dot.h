// Products of a few rows with a weight in blocks of codes, which never leave the registers once they are decoded.
#pragma once

#include "ops/cpu/coded_matrix.h"
#include "ops/kernel.h"
#include "ops/linear/row_products.h"

namespace headroom {

// Computes columns begin .. end of y = x w^T [+ bias] [+ residual] with `weight` for w; call.w is not read. The bits
// are those of dot_range() with the weight that coded_tile_decoder() decodes. No heap call; thread-safe across distinct
// columns.
using CodedRange = void (*)(const RowProduct& call, const CodedMatrix& weight, int64_t begin, int64_t end);

// For `rows` rows of `ins` elements; nullptr where they take the way through decoded rows. Needs x in bf16, AVX-512
// with bf16, at most four rows, whole vectors, and scales that are not codes themselves.
CodedRange coded_dot_range(const Storage& storage, const RowTypes& types, int64_t rows, int64_t ins,
                           const Capabilities& capabilities);

}  // namespace headroom
