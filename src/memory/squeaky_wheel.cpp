#include "memory/squeaky_wheel.h"

#include <algorithm>

#include "memory/random_steps.h"

namespace headroom {
namespace {

// The order with about half of the blamed items moved forward and a few neighbours swapped.
PlacementOrder rearrange(const PlacementOrder& order, const std::vector<char>& blamed, RandomSteps& random) {
  struct Ranked {
    double position;
    int32_t index;
  };
  std::vector<Ranked> ranked(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    auto position = static_cast<double>(k);
    if (blamed[static_cast<size_t>(order[k])] && random.below(2) == 0) position *= 0.8 - 0.6 * random.fraction();
    ranked[k] = {position, order[k]};
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.position < b.position; });
  PlacementOrder result(order.size());
  for (size_t k = 0; k < ranked.size(); ++k) result[k] = ranked[k].index;
  const size_t swaps = order.size() < 2 ? 0 : 1 + order.size() / 64;
  for (size_t k = 0; k < swaps; ++k) {
    const size_t at = random.below(order.size() - 1);
    std::swap(result[at], result[at + 1]);
  }
  return result;
}

}  // namespace

GreedyPass squeaky_wheel(const Timeline& timeline, PlacementOrder order, GreedyPass start,
                         const SqueakyWheelOptions& options, Occupancy& occupancy) {
  RandomSteps random(0x6865616472ULL);
  GreedyPass best = start;
  GreedyPass current = std::move(start);
  for (int64_t k = 0; k < options.iterations && best.peak > options.goal; ++k) {
    if (occupancy.work() > options.work_limit) break;
    std::vector<char> blamed(timeline.items.size(), 0);
    for (const int32_t index : current.too_high) blamed[static_cast<size_t>(index)] = 1;
    PlacementOrder candidate = rearrange(order, blamed, random);
    const int64_t limit = current.peak + current.peak / 512;
    auto pass = place_in_order(timeline, candidate, options.rule, options.goal, limit, occupancy);
    if (!pass) continue;
    order = std::move(candidate);
    current = std::move(*pass);
    if (current.peak < best.peak) best = current;
  }
  return best;
}

}  // namespace headroom
