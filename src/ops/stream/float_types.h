// From an element type at run time to the type of its storage: float, bfloat16 or float16. A call never has both narrow
// types.
#pragma once

#include "base/bfloat16.h"
#include "base/float16.h"
#include "ir/dtype.h"

namespace headroom {

// body(T{}) for the narrow type; `dtype` is bf16 or f16.
template <typename Body>
inline void with_narrow(DType dtype, const Body& body) {
  if (dtype == DType::f16)
    body(float16{});
  else
    body(bfloat16{});
}

// body(T{}) for an f32, bf16 or f16 tensor.
template <typename Body>
inline void with_float(DType dtype, const Body& body) {
  if (dtype == DType::f32)
    body(float{});
  else
    with_narrow(dtype, body);
}

// body(X{}, Y{}) for two tensors.
template <typename Body>
inline void with_floats(DType x, DType y, const Body& body) {
  if (x == DType::f32)
    with_float(y, [&](auto second) { body(float{}, second); });
  else if (y == DType::f32)
    with_narrow(x, [&](auto first) { body(first, float{}); });
  else
    with_narrow(x, [&](auto both) { body(both, both); });
}

}  // namespace headroom
