#include "ir/row_slice.h"

#include "base/error.h"

namespace headroom {
namespace {

// The rows of an operand if the call sees only the slice of it; 0 if it sees the operand as it is.
int64_t whole_rows(const Type& type, const RowSlice& slice) {
  if (type.shape.size() < 2 || type.shape[0].symbol >= 0 || type.shape[0].constant == slice.rows) return 0;
  return type.shape[0].constant;
}

void require_inside(const RowSlice& slice, int64_t rows) {
  HR_CHECK(slice.first >= 0 && slice.rows >= 1 && slice.rows <= rows - slice.first, "rows {} to {} of {}", slice.first,
           slice.first + slice.rows, rows);
}

}  // namespace

std::optional<RowSlice> row_slice(const Attrs& attrs) {
  const int64_t rows = attrs.integer("rows", 0);
  if (rows == 0) return std::nullopt;
  return RowSlice{attrs.integer("first_row", 0), rows};
}

void set_row_slice(Attrs& attrs, const RowSlice& slice) { attrs.set("first_row", slice.first).set("rows", slice.rows); }

Type rows_of(Type type, const RowSlice& slice) {
  if (const int64_t rows = whole_rows(type, slice)) {
    require_inside(slice, rows);
    type.shape[0] = Dim::of(slice.rows);
  }
  return type;
}

int64_t select_rows(const Type& type, ConcreteType& concrete, const RowSlice& slice) {
  const int64_t rows = whole_rows(type, slice);
  if (rows == 0) return 0;
  require_inside(slice, rows);
  concrete.dims[0] = slice.first;
  const int64_t begin = storage_bytes(concrete);
  concrete.dims[0] = slice.rows;
  return begin;
}

std::vector<Type> infer_call(const Op& op, std::span<const Type> inputs, const Attrs& attrs) {
  const std::optional<RowSlice> slice = row_slice(attrs);
  if (!slice) return op.infer(inputs, attrs);
  std::vector<Type> rows;
  rows.reserve(inputs.size());
  for (const Type& type : inputs) rows.push_back(rows_of(type, *slice));
  std::vector<Type> outputs = op.infer(rows, attrs);
  for (const Alias& alias : op.aliases(attrs, static_cast<int>(inputs.size())))
    if (alias.must) outputs.at(static_cast<size_t>(alias.output)) = inputs[static_cast<size_t>(alias.input)];
  return outputs;
}

}  // namespace headroom
