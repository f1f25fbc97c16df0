#include "formats/stored_type.h"

#include <array>

#include "base/error.h"

namespace headroom {
namespace {

struct TypeRow {
  StoredType type;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<TypeRow, 10> kTypes{{{StoredType::f64, "F64", 8},
                                          {StoredType::f32, "F32", 4},
                                          {StoredType::f16, "F16", 2},
                                          {StoredType::bf16, "BF16", 2},
                                          {StoredType::i64, "I64", 8},
                                          {StoredType::i32, "I32", 4},
                                          {StoredType::i16, "I16", 2},
                                          {StoredType::i8, "I8", 1},
                                          {StoredType::u8, "U8", 1},
                                          {StoredType::boolean, "BOOL", 1}}};

const TypeRow& row_of(StoredType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row;
  HR_CHECK(false, "stored type {}", static_cast<int>(type));
  return kTypes[0];
}

}  // namespace

int64_t stored_type_bytes(StoredType type) { return row_of(type).bytes; }

std::string_view stored_type_name(StoredType type) { return row_of(type).name; }

std::optional<StoredType> stored_type_from_name(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace headroom
