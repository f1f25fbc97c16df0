#include "ir/type.h"

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {

int64_t dim_value(const Dim& dim, const Bindings& bindings) {
  if (dim.symbol < 0) return dim.constant;
  HR_CHECK(dim.symbol < static_cast<int64_t>(bindings.size()), "symbol {} is not bound", dim.symbol);
  return part_length(bindings[static_cast<size_t>(dim.symbol)], dim.part, dim.parts);
}

ConcreteType concrete(const Type& type, const Bindings& bindings) {
  ConcreteType out;
  concrete(type, bindings, out);
  return out;
}

void concrete(const Type& type, const Bindings& bindings, ConcreteType& out) {
  out.dtype = type.dtype;
  out.storage = type.storage;
  out.dims.resize(type.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i) out.dims[i] = dim_value(type.shape[i], bindings);
  if (type.shard) {
    int64_t& length = out.dims.at(static_cast<size_t>(type.shard->axis));
    length = (length + type.shard->parts - 1) / type.shard->parts;
  }
}

std::string dims_text(const Type& type) {
  std::string text;
  for (const Dim& dim : type.shape) text += fmt::format("{}{}", text.empty() ? "" : ",", dim.constant);
  return text;
}

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

int64_t storage_bytes(const ConcreteType& type) {
  const int64_t count = element_count(type.dims);
  if (type.storage.dense()) return count * dtype_bytes(type.dtype);
  const int64_t blocks = (count + type.storage.block - 1) / type.storage.block;
  const int64_t payload = (count * type.storage.payload_bits + 7) / 8;
  return align_up(payload, dtype_bytes(type.storage.scale)) + blocks * dtype_bytes(type.storage.scale);
}

}  // namespace headroom
