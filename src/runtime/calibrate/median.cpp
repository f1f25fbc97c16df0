#include "runtime/calibrate/median.h"

#include <algorithm>

namespace headroom {

Profile median_of(const std::vector<Profile>& rounds) {
  std::vector<double> rates(rounds.size());
  // The median of what `get` finds in each round.
  const auto median = [&](const auto& get) {
    std::transform(rounds.begin(), rounds.end(), rates.begin(), get);
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    return *middle;
  };
  Profile result = rounds.front();
  for (size_t i = 0; i < result.products.size(); ++i)
    result.products[i].flops_per_second = median([i](const Profile& p) { return p.products[i].flops_per_second; });
  for (size_t i = 0; i < result.attention.size(); ++i) {
    result.attention[i].forward = median([i](const Profile& p) { return p.attention[i].forward; });
    result.attention[i].backward = median([i](const Profile& p) { return p.attention[i].backward; });
  }
  for (size_t i = 0; i < result.streams.size(); ++i)
    result.streams[i].bytes_per_second = median([i](const Profile& p) { return p.streams[i].bytes_per_second; });
  for (size_t i = 0; i < result.in_sequence.size(); ++i)
    result.in_sequence[i].factor = median([i](const Profile& p) { return p.in_sequence[i].factor; });
  for (double Profile::*rate :
       {&Profile::stream_bytes_per_second, &Profile::optimizer_bytes_per_second, &Profile::softmax_bytes_per_second,
        &Profile::copy_bytes_per_second, &Profile::launch_seconds})
    result.*rate = median([rate](const Profile& p) { return p.*rate; });
  return result;
}

}  // namespace headroom
