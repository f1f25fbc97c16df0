#include "ir/type.h"

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {

int64_t dim_value(const Dim& dim, const Bindings& bindings) {
  if (dim.symbol < 0) return dim.constant;
  HR_CHECK(dim.symbol < static_cast<int64_t>(bindings.size()), "symbol {} is not bound", dim.symbol);
  const int64_t length = bindings[static_cast<size_t>(dim.symbol)];
  return dim.parts == 1 ? length : part_length(length, dim.part, dim.parts);
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

StorageLayout storage_layout(const Storage& storage, int64_t elements) {
  StorageLayout layout;
  layout.scale_count = (elements + storage.block - 1) / storage.block;
  const int64_t scale_bytes = dtype_bytes(storage.scale);
  layout.scales = align_up(code_bytes(elements, storage.payload_bits), scale_bytes);
  if (storage.scale_block == 0) {
    layout.bytes = layout.scales + layout.scale_count * scale_bytes;
    return layout;
  }
  layout.scale_scales = align_up(layout.scales + layout.scale_count, scale_bytes);
  layout.scale_scale_count = (layout.scale_count + storage.scale_block - 1) / storage.scale_block;
  layout.bytes = layout.scale_scales + (layout.scale_scale_count + 1) * scale_bytes;
  return layout;
}

int64_t storage_bytes(const ConcreteType& type) {
  const int64_t count = element_count(type.dims);
  if (type.storage.dense()) return count * dtype_bytes(type.dtype);
  return storage_layout(type.storage, count).bytes;
}

}  // namespace headroom
