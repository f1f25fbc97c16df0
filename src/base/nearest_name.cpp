#include "base/nearest_name.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

namespace headroom {
namespace {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  std::string best;
  int least = INT_MAX;
  for (const std::string& name : names)
    if (const int distance = edit_distance(wrong, name); distance < least) best = name, least = distance;
  return best;
}

}  // namespace headroom
