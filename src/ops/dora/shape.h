// The operands of the ops of weight-decomposed adapters (DoRA) as numbers.
#pragma once

#include <array>

#include "ir/op.h"

namespace headroom {

struct RowLengthsInputs {
  static constexpr size_t weight = 0, a = 1, b = 2, into = 3;
};

// weight [outs, ins], a [rank, ins], b [outs, rank].
struct RowLengthsShape {
  int64_t outs = 1, ins = 1, rank = 1;
};

inline RowLengthsShape row_lengths_shape(const OpCall& call) {
  const std::vector<int64_t>&weight = call.inputs[RowLengthsInputs::weight].dims,
        &a = call.inputs[RowLengthsInputs::a].dims;
  return {weight[0], weight[1], a[0]};
}

// Rows of the weight whose lengths are computed together: they share the loads of a.
inline constexpr int64_t kLengthRows = 4;

// The flags of a node with a bias or a residual after the first three inputs.
struct MagnitudeInputs {
  static constexpr size_t z = 0, magnitude = 1, lengths = 2;
  size_t bias = 0, residual = 0, count = 3;  // 0: there is none

  explicit MagnitudeInputs(const Attrs& attrs) {
    if (attrs.integer("bias") != 0) bias = count++;
    if (attrs.integer("residual") != 0) residual = count++;
  }
};

struct MagnitudeGradInputs {
  static constexpr size_t dy = 0, z = 1, magnitude = 2, lengths = 3, accumulator = 4;
};

// The dimensions of z as [sequences, rows of one, width].
inline std::array<int64_t, 3> magnitude_rows(const ConcreteType& z) {
  const std::vector<int64_t>& dims = z.dims;
  std::array<int64_t, 3> rows{1, dims[dims.size() - 2], dims.back()};
  for (size_t i = 0; i + 2 < dims.size(); ++i) rows[0] *= dims[i];
  return rows;
}

}  // namespace headroom
