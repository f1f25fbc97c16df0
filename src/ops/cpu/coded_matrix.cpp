#include "ops/cpu/coded_matrix.h"

#include <algorithm>

#include "base/block_codes.h"
#include "base/dynamic_map.h"
#include "base/error.h"

namespace headroom {

CodedMatrix::CodedMatrix(const void* data, const Storage& storage, int64_t elements)
    : storage_(storage), layout_(storage_layout(storage, elements)), data_(static_cast<const uint8_t*>(data)) {
  HR_CHECK(storage.scale == DType::f32, "scales in {}", dtype_name(storage.scale));
}

float CodedMatrix::scale_of(int64_t block) const {
  if (storage_.scale_block == 0) return reinterpret_cast<const float*>(data_ + layout_.scales)[block];
  const float* scales = reinterpret_cast<const float*>(data_ + layout_.scale_scales);
  const float value = dynamic_map(true).value[data_[layout_.scales + block]];
  return value * scales[block / storage_.scale_block] + scales[layout_.scale_scale_count];
}

void CodedMatrix::read(int64_t first, int64_t count, float* to) const {
  const int64_t end = first + count;
  for (int64_t at = first; at < end;) {
    const int64_t block = at / storage_.block, begin = block * storage_.block;
    const int64_t piece = std::min(end, begin + storage_.block) - at;
    decode(storage_.codes, storage_.payload_bits, data_ + code_bytes(begin, storage_.payload_bits), scale_of(block),
           at - begin, piece, to + (at - first));
    at += piece;
  }
}

}  // namespace headroom
