// Where the rows of a part are in the tensor that they are copied from or to.
#pragma once

#include <cstdint>

#include "ir/attrs.h"
#include "ir/type.h"

namespace headroom {

// In bytes: each sequence of the whole has `stride`; the part's rows are `bytes` of it, from `begin` on.
struct RowSpan {
  int64_t sequences = 0;
  int64_t stride = 0;
  int64_t begin = 0;
  int64_t bytes = 0;
};

// Of a tensor [batch, seq, ...] and the attributes of the copy.
inline RowSpan row_span(const ConcreteType& whole, const Attrs& attrs) {
  const int64_t seq = whole.dims[1], part = attrs.integer("part"), parts = attrs.integer("parts");
  int64_t row = dtype_bytes(whole.dtype);
  for (size_t i = 2; i < whole.dims.size(); ++i) row *= whole.dims[i];
  return {whole.dims[0], seq * row, part_begin(seq, part, parts) * row, part_length(seq, part, parts) * row};
}

}  // namespace headroom
