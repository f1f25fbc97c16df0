#include "ir/dtype.h"

#include <array>

namespace headroom {
namespace {
struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<Row, 8> kRows{{{DType::f64, "f64", 8},
                                    {DType::f32, "f32", 4},
                                    {DType::bf16, "bf16", 2},
                                    {DType::f16, "f16", 2},
                                    {DType::i64, "i64", 8},
                                    {DType::i32, "i32", 4},
                                    {DType::i8, "i8", 1},
                                    {DType::u8, "u8", 1}}};
}  // namespace

int64_t dtype_bytes(DType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }
std::string_view dtype_name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace headroom
