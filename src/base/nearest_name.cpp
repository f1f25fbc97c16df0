#include "base/nearest_name.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace headroom {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  std::string best;
  size_t least = SIZE_MAX;
  for (const std::string& name : names)
    if (const size_t distance = edit_distance(wrong, name); distance < least) best = name, least = distance;
  return best;
}

}  // namespace headroom
