// Checks that the shape rules of the streaming ops share. Each throws InternalError naming the op and the broken rule.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace headroom::operand_rules {

inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

// `least` to `most` inputs, all of them dense.
inline void require_inputs(std::string_view op, std::span<const Type> inputs, size_t least, size_t most) {
  HR_CHECK(inputs.size() >= least && inputs.size() <= most, "{}: {} inputs, not {} to {}", op, inputs.size(), least,
           most);
  for (const Type& type : inputs) HR_CHECK(type.storage.dense(), "{}: inputs are stored densely", op);
}

inline void require_inputs(std::string_view op, std::span<const Type> inputs, size_t count) {
  require_inputs(op, inputs, count, count);
}

// An f32, bf16 or f16 tensor of at least `rank` dimensions.
inline void require_float(std::string_view op, std::string_view what, const Type& type, size_t rank = 1) {
  HR_CHECK(is_float(type.dtype), "{}: {} is f32, bf16 or f16, not {}", op, what, dtype_name(type.dtype));
  HR_CHECK(type.shape.size() >= rank, "{}: {} has {} dimensions, not {} or more", op, what, type.shape.size(), rank);
}

// Exactly this element type, shape and shard; the tier is free.
inline void require_type(std::string_view op, std::string_view what, const Type& found, const Type& wanted) {
  HR_CHECK(found.dtype == wanted.dtype, "{}: {} is {}, not {}", op, what, dtype_name(wanted.dtype),
           dtype_name(found.dtype));
  HR_CHECK(found.shape == wanted.shape, "{}: {} has another shape than the op's other operands", op, what);
  HR_CHECK(found.shard == wanted.shard, "{}: {} is sharded otherwise than the op's other operands", op, what);
}

// The shape and shard of `wanted`, in f32, bf16 or f16.
inline void require_float_like(std::string_view op, std::string_view what, const Type& found, const Type& wanted) {
  require_float(op, what, found, 0);
  Type like = wanted;
  like.dtype = found.dtype;
  require_type(op, what, found, like);
}

// A whole (not sharded) vector or table of `dtype`.
inline void require_whole(std::string_view op, std::string_view what, const Type& found, DType dtype,
                          std::vector<Dim> shape) {
  require_type(op, what, found, Type{dtype, std::move(shape)});
}

// Added to positions: one number, or one for each of `batch` rows.
inline void require_offset(std::string_view op, const Type& found, const Dim& batch) {
  const bool each = found.shape.size() == 1 && found.shape[0] == batch;
  require_whole(op, "the offset", found, DType::i32, {each ? batch : Dim::of(1)});
}

// A dimension known when the graph is built.
inline int64_t constant_dim(std::string_view op, std::string_view what, const Dim& dim) {
  HR_CHECK(dim.symbol < 0 && dim.constant >= 1, "{}: {} is a positive constant", op, what);
  return dim.constant;
}

// A computed value of `dtype` in the device tier with the shape and shard of `like`.
inline Type computed(const Type& like, DType dtype) { return Type{dtype, like.shape, {}, Tier::device, like.shard}; }

// The narrow copy of a weight, with its shape and shard.
inline void require_copy(std::string_view op, const Type& found, const Type& weight) {
  HR_CHECK(is_float(found.dtype) && found.dtype != DType::f32, "{}: a copy is bf16 or f16", op);
  require_type(op, "the copy", found, computed(weight, found.dtype));
}

// Attribute "dtype": f32, bf16 or f16; absent: `fallback`, the operand's dtype. If that is narrow, not the other narrow
// one.
inline DType float_attr(std::string_view op, const Attrs& attrs, DType fallback) {
  const std::string_view text = attrs.text("dtype", dtype_name(fallback));
  const std::optional<DType> dtype = parse_dtype(text);
  HR_CHECK(dtype && is_float(*dtype), "{}: dtype is f32, bf16 or f16, not '{}'", op, text);
  HR_CHECK(*dtype == fallback || *dtype == DType::f32 || fallback == DType::f32, "{}: no {} of {}", op, text,
           dtype_name(fallback));
  return *dtype;
}

inline void require_accumulate(std::string_view op, const Attrs& attrs, std::string_view name = "accumulate") {
  const std::string_view text = attrs.text(name, "always");
  HR_CHECK(text == "carried" || text == "always", "{}: {} is carried or always, not '{}'", op, name, text);
}

// A 0/1 attribute.
inline bool flag(std::string_view op, const Attrs& attrs, std::string_view name) {
  const int64_t value = attrs.integer(name);
  HR_CHECK(value == 0 || value == 1, "{}: {} is 0 or 1, not {}", op, name, value);
  return value == 1;
}

}  // namespace headroom::operand_rules
