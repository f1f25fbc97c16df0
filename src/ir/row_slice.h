// Calls on a slice of the rows of their tensors. A node with attributes "rows" and "first_row" works on rows
// [first_row, first_row + rows) of its operands with at least two dimensions, the first of which is constant (batches
// are not). Such an operand is whole or holds only these rows. A result in the storage of a whole operand is whole: its
// other rows are unchanged.
//     w1, m1, v1 = adamw(w, g, m, v, ...)  rows=16 first_row=32     w and g whole, m and v copies of 16 rows
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/op.h"

namespace headroom {

struct RowSlice {
  int64_t first = 0;
  int64_t rows = 0;  // at least 1
  bool operator==(const RowSlice&) const = default;
};

// The slice that a call works on; nullopt if it works on all rows.
std::optional<RowSlice> row_slice(const Attrs& attrs);
void set_row_slice(Attrs& attrs, const RowSlice& slice);

// The type of these rows of an operand. A type that holds only them, or has no rows, is returned unchanged.
Type rows_of(Type type, const RowSlice& slice);

// The same for the concrete type of an operand of this type, in place. Returns the byte offset of the rows in the
// operand.
int64_t select_rows(const Type& type, ConcreteType& concrete, const RowSlice& slice);

// Types of a call's outputs: Op::infer for the rows that it works on; outputs written into a whole operand are whole.
// Throws InternalError as Op::infer does, and if the slice does not lie in an operand.
std::vector<Type> infer_call(const Op& op, std::span<const Type> inputs, const Attrs& attrs);

}  // namespace headroom
