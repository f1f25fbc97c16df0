#include "base/dynamic_map.h"

#include <algorithm>
#include <limits>

namespace headroom {
namespace {

#define HR_MAP constexpr
#include "base/dynamic_map-inl.h"
#undef HR_MAP

constexpr void set_levels(bool is_signed, DynamicMap& map) {
  map.shift = is_signed ? 0 : 1;
  const int top = top_rank(is_signed);
  for (size_t level = 0; level < DynamicMap::kLevels; ++level) {
    const int steps = level == 0 ? map.shift : (is_signed ? 1 : 2) << (level - 1), rank = steps - map.shift;
    const double first = magnitude(is_signed, rank), unit = rank > 0 && rank < top ? 0.9 / steps : 0;
    double decade = 1e-6;
    for (size_t i = 1; i < level; ++i) decade *= 10;
    map.steps[level] = static_cast<float>(steps);
    map.first[level] = static_cast<float>(first);
    map.width[level] = static_cast<float>(unit * decade);
    map.per[level] = unit > 0 ? static_cast<float>(1 / (unit * decade)) : 0.0f;
    map.enter[level] = rank > 0 ? map.bound[static_cast<size_t>(rank - 1)] : 0.0f;
  }
}

constexpr DynamicMap make_map(bool is_signed) {
  DynamicMap map;
  for (int code = 0; code < 256; ++code)
    map.value[static_cast<size_t>(code)] = static_cast<float>(value_of_code(is_signed, code));
  const int top = top_rank(is_signed);
  for (int rank = 0; rank < 256; ++rank) {
    const double middle = (magnitude(is_signed, rank) + magnitude(is_signed, rank + 1)) / 2;
    map.bound[static_cast<size_t>(rank)] =
        rank < top ? static_cast<float>(middle) : std::numeric_limits<float>::infinity();
  }
  set_levels(is_signed, map);
  return map;
}

constexpr DynamicMap kSignedMap = make_map(true), kUnsignedMap = make_map(false);

}  // namespace

const DynamicMap& dynamic_map(bool is_signed) { return is_signed ? kSignedMap : kUnsignedMap; }

uint8_t nearest_code(bool is_signed, float scaled) {
  const float magnitude = scaled < 0 ? -scaled : scaled;
  const std::array<float, 256>& bounds = dynamic_map(is_signed).bound;
  const auto rank = std::lower_bound(bounds.begin(), bounds.begin() + top_rank(is_signed), magnitude) - bounds.begin();
  return static_cast<uint8_t>(code_of_rank(is_signed, scaled < 0, static_cast<int>(rank)));
}

}  // namespace headroom
