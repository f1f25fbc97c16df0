// Logical element types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, i8, u8 };

// Bytes of one element.
int64_t dtype_bytes(DType dtype);
// "f32", "bf16", ...: the spelling of the IR's text form.
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
constexpr bool is_floating(DType d) {
  return d == DType::f64 || d == DType::f32 || d == DType::bf16 || d == DType::f16;
}

}  // namespace headroom
