#include <cstddef>

#include "base/threads.h"
#include "ops/cast/convert.h"
#include "ops/elementwise/simd.h"

namespace headroom {

void convert_floats(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  ElementwiseArrays arrays;
  arrays.in[0] = from;
  arrays.out[0] = to;
  arrays.dtype = from_dtype;
  arrays.result_dtype = to_dtype;
  elementwise_range(Formula::copy, {}, arrays, 0, count);
}

void convert_in_parallel(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  const int64_t from_bytes = dtype_bytes(from_dtype), to_bytes = dtype_bytes(to_dtype);
  parallel_for(count, 4096, [&](int64_t begin, int64_t end, int) {
    convert_floats(static_cast<const std::byte*>(from) + begin * from_bytes, from_dtype,
                   static_cast<std::byte*>(to) + begin * to_bytes, to_dtype, end - begin);
  });
}

}  // namespace headroom
