// Conversion between fp32 and stored numbers: F32, BF16 or F16, rounded to nearest even.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/stored_type.h"

namespace headroom {

// The type named "float32", "bfloat16" or "float16", as in --save-dtype and config.json.
std::optional<StoredType> stored_float(std::string_view dtype);

// to[i] = from[i]; `from` has to.size() numbers of that type, at any address.
void widen_floats(StoredType type, const std::byte* from, std::span<float> to);
// `to` has room for as many numbers of that type.
void narrow_floats(std::span<const float> from, StoredType type, std::byte* to);

}  // namespace headroom
