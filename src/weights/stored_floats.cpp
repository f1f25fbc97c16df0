#include "weights/stored_floats.h"

#include <cstring>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"

namespace headroom {
namespace {

template <typename T>
void widen(const std::byte* from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<float>(value);
  }
}

template <typename T>
void narrow(std::span<const float> from, std::byte* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    const T value(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace

std::optional<StoredType> stored_float(std::string_view dtype) {
  if (dtype == "float32") return StoredType::f32;
  if (dtype == "bfloat16") return StoredType::bf16;
  if (dtype == "float16") return StoredType::f16;
  return std::nullopt;
}

void widen_floats(StoredType type, const std::byte* from, std::span<float> to) {
  if (type == StoredType::f32)
    std::memcpy(to.data(), from, to.size_bytes());
  else if (type == StoredType::bf16)
    widen<bfloat16>(from, to);
  else if (type == StoredType::f16)
    widen<float16>(from, to);
  else
    HR_CHECK(false, "{} is not a type of weights", stored_type_name(type));
}

void narrow_floats(std::span<const float> from, StoredType type, std::byte* to) {
  if (type == StoredType::f32)
    std::memcpy(to, from.data(), from.size_bytes());
  else if (type == StoredType::bf16)
    narrow<bfloat16>(from, to);
  else if (type == StoredType::f16)
    narrow<float16>(from, to);
  else
    HR_CHECK(false, "{} is not a type of weights", stored_type_name(type));
}

}  // namespace headroom
