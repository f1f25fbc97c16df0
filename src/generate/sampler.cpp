#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/counter_random.h"

namespace headroom {
double counter_uniform(uint64_t seed, uint64_t counter) { return unit_interval(mix64(mix64(seed) ^ counter)); }

Sampler::Sampler(const SamplingOptions& options, int64_t vocab)
    : options_(options), order_(static_cast<size_t>(vocab)), weights_(static_cast<size_t>(vocab)) {}

int32_t Sampler::greedy(std::span<const float> logits) const {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

int32_t Sampler::pick(std::span<const float> logits, int64_t position) {
  if (options_.temperature <= 0 || options_.top_k == 1) return greedy(logits);
  std::iota(order_.begin(), order_.end(), 0);
  const auto better = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  size_t kept = order_.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<size_t>(options_.top_k));
  if (kept < order_.size())
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept), order_.end(), better);
  else
    std::sort(order_.begin(), order_.end(), better);
  const double top = logits[static_cast<size_t>(order_[0])];
  double sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += weights_[i] =
        std::exp((static_cast<double>(logits[static_cast<size_t>(order_[i])]) - top) / options_.temperature);
  if (options_.top_p < 1.0) {
    double mass = 0;
    size_t count = 0;
    while (count < kept && mass < options_.top_p * sum) mass += weights_[count++];
    kept = std::max<size_t>(1, count);
    sum = mass;
  }
  double left = counter_uniform(options_.seed, static_cast<uint64_t>(position)) * sum;
  for (size_t i = 0; i < kept; ++i)
    if ((left -= weights_[i]) < 0) return order_[i];
  return order_[kept - 1];
}

}  // namespace headroom
