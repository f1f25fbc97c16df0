// How a batch-invariant product reads the rows of every expert: as they are stored, or arranged once for all columns in
// AMX tiles or in blocks of rows (ops/linear). The same functions size the plan and the kernel.
#pragma once

#include <algorithm>

#include "ops/linear/row_blocks.h"
#include "ops/moe_linear/products.h"

namespace headroom {

enum class RowForm { stored, tiles, blocks };

// Of expert_linear.
inline RowTypes expert_types(const OpCall& call) {
  return {call.inputs[ExpertInputs::rows].dtype, call.inputs[ExpertInputs::weight].dtype, call.outputs[0].dtype};
}

// Does not depend on the number of rows: an expert's rows have the same bits whatever the others are.
inline RowForm row_form(const RowTypes& types, int64_t ins, const Capabilities& capabilities) {
  if (runs_on_tiles(types, ins, capabilities)) return RowForm::tiles;
  return runs_in_blocks(types, ins, capabilities) ? RowForm::blocks : RowForm::stored;
}

// A single row is read as it is stored.
inline bool is_arranged(RowForm form, int64_t rows) {
  if (form == RowForm::tiles) return rows > 1;
  return form == RowForm::blocks && rows_in_blocks(rows) > 0;
}

inline int64_t rows_of_a_pass(RowForm form, int64_t rows, int64_t ins) {
  if (!is_arranged(form, rows)) return rows;
  return form == RowForm::tiles ? tiled_rows(rows, ins) : arranged_rows(rows, ins);
}

// Scratch in bytes for every routing: the rows of each expert fill up their last tile or block.
inline int64_t arranged_bytes(RowForm form, const ExpertShape& shape) {
  if (form == RowForm::stored || shape.rows <= 1) return 0;
  const int64_t partial = std::min(shape.experts, shape.rows) * (kTileLanes - 1);
  return align_up(shape.rows + partial, kTileLanes) * shape.ins * 2;
}

}  // namespace headroom
