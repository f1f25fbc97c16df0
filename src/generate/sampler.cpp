#include "generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/counter_random.h"
#include "base/threads.h"

namespace headroom {
namespace {

constexpr size_t kChunk = 2048;  // ids whose weights are summed in one piece

// Numbers by size, then NaNs.
bool larger(float x, float y) { return x > y || (std::isnan(y) && !std::isnan(x)); }

// The largest number; NaNs are smaller.
float largest(std::span<const float> numbers) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  const size_t whole = numbers.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = numbers[i + lane] > lanes[lane] ? numbers[i + lane] : lanes[lane];
  float most = *std::max_element(lanes.begin(), lanes.end());
  for (size_t i = whole; i < numbers.size(); ++i) most = numbers[i] > most ? numbers[i] : most;
  return most;
}

size_t chunks_of(size_t count) { return (count + kChunk - 1) / kChunk; }

std::span<const float> chunk_of(std::span<const float> logits, size_t chunk) {
  return logits.subspan(chunk * kChunk, std::min(kChunk, logits.size() - chunk * kChunk));
}

// body(chunk) for every chunk, on all threads.
template <typename F>
void each_chunk(size_t chunks, const F& body) {
  parallel_for(static_cast<int64_t>(chunks), 1, [&](int64_t begin, int64_t end, int) {
    for (auto chunk = static_cast<size_t>(begin); chunk < static_cast<size_t>(end); ++chunk) body(chunk);
  });
}

}  // namespace

double counter_uniform(uint64_t seed, uint64_t counter) { return unit_interval(mix64(mix64(seed) ^ counter)); }

Sampler::Sampler(const SamplingOptions& options, int64_t vocab)
    : options_(options),
      order_(static_cast<size_t>(vocab)),
      weights_(static_cast<size_t>(vocab)),
      sums_(chunks_of(static_cast<size_t>(vocab))) {}

Sampler::Sampler(int64_t vocab) : Sampler(SamplingOptions{}, vocab) {}

int64_t Sampler::memory_bytes(int64_t vocab) {
  return vocab * static_cast<int64_t>(sizeof(int32_t) + sizeof(double)) +
         static_cast<int64_t>(chunks_of(static_cast<size_t>(vocab)) * sizeof(double));
}

int32_t Sampler::pick(const SamplingOptions& options, std::span<const float> logits, int64_t position) {
  const int32_t best = first_of_largest(logits);
  const float top = logits[static_cast<size_t>(best)];
  if (options.temperature <= 0 || options.top_k == 1 || !std::isfinite(top)) return best;
  weigh(options, logits, top);
  const double uniform = counter_uniform(options.seed, static_cast<uint64_t>(position));
  const bool cut = options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size());
  return cut || options.top_p < 1.0 ? draw_of_largest(options, logits, uniform) : draw_any(uniform, best);
}

// Uses `sums_` for the largest of each chunk.
int32_t Sampler::first_of_largest(std::span<const float> logits) {
  const std::span<double> largest_of = std::span(sums_).first(chunks_of(logits.size()));
  each_chunk(largest_of.size(), [&](size_t chunk) { largest_of[chunk] = largest(chunk_of(logits, chunk)); });
  const double most = *std::max_element(largest_of.begin(), largest_of.end());
  for (size_t chunk = 0; chunk < largest_of.size(); ++chunk) {
    if (largest_of[chunk] != most) continue;
    const std::span<const float> part = chunk_of(logits, chunk);
    const auto found = std::find(part.begin(), part.end(), static_cast<float>(most));
    if (found != part.end()) return static_cast<int32_t>(chunk * kChunk + static_cast<size_t>(found - part.begin()));
  }
  return 0;  // NaNs alone
}

void Sampler::weigh(const SamplingOptions& options, std::span<const float> logits, float top) {
  const auto weight = [&](float logit) {
    const double value = std::isnan(logit) ? 0 : std::exp((static_cast<double>(logit) - top) / options.temperature);
    return value < options.min_p ? 0 : value;
  };
  each_chunk(sums_.size(), [&](size_t chunk) {
    double sum = 0;
    for (size_t id = chunk * kChunk; id < std::min(logits.size(), (chunk + 1) * kChunk); ++id)
      sum += weights_[id] = weight(logits[id]);
    sums_[chunk] = sum;
  });
}

// The id at which the weights of the ids up to it exceed `uniform` times the total; `otherwise` if rounding leaves
// none.
int32_t Sampler::draw_any(double uniform, int32_t otherwise) const {
  double left = uniform * std::accumulate(sums_.begin(), sums_.end(), 0.0);
  size_t chunk = 0;
  while (chunk + 1 < sums_.size() && left >= sums_[chunk]) left -= sums_[chunk++];
  for (size_t id = chunk * kChunk; id < std::min(weights_.size(), (chunk + 1) * kChunk); ++id)
    if ((left -= weights_[id]) < 0) return static_cast<int32_t>(id);
  return otherwise;
}

// The same among the top_k largest, of which the first that together exceed top_p. They are sorted only as far as
// needed: the sorted part grows until it contains them.
int32_t Sampler::draw_of_largest(const SamplingOptions& options, std::span<const float> logits, double uniform) {
  const auto better = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return larger(x, y) || (!larger(y, x) && a < b);
  };
  std::iota(order_.begin(), order_.end(), 0);
  size_t most = order_.size(), ordered = 0;
  if (options.top_k > 0) most = std::min(most, static_cast<size_t>(options.top_k));
  const auto order_to = [&](size_t count) {
    const auto at = [&](size_t index) { return order_.begin() + static_cast<std::ptrdiff_t>(index); };
    if (count < order_.size()) std::nth_element(at(ordered), at(count), order_.end(), better);
    std::sort(at(ordered), at(count), better);
    ordered = count;
  };
  const auto weight = [&](size_t index) { return weights_[static_cast<size_t>(order_[index])]; };
  double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  if (most < order_.size()) {
    order_to(most);
    sum = 0;
    for (size_t i = 0; i < most; ++i) sum += weight(i);
  }
  double mass = 0;
  size_t kept = 0;
  for (; kept < most && (kept == 0 || mass < options.top_p * sum); ++kept) {
    if (kept == ordered) order_to(std::min(most, 64 + 8 * ordered));
    mass += weight(kept);
  }
  double left = uniform * mass;
  for (size_t i = 0; i < kept; ++i)
    if ((left -= weight(i)) < 0) return order_[i];
  while (kept > 1 && weight(kept - 1) == 0) --kept;
  return order_[kept - 1];
}

}  // namespace headroom
