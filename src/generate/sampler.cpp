#include "generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/counter_random.h"
#include "base/threads.h"

namespace headroom {
namespace {

constexpr size_t kChunk = 2048;  // ids whose weights are summed in one piece
constexpr size_t kBlock = 64;    // ids whose largest logit bounds the top_k largest

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
size_t blocks_of(size_t count) { return (count + kBlock - 1) / kBlock; }

double weight_of(float logit, float top, const SamplingOptions& options) {
  const double value = std::isnan(logit) ? 0 : std::exp((static_cast<double>(logit) - top) / options.temperature);
  return value < options.min_p ? 0 : value;
}

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

// Ids that are sorted by logit as far as needed, ties by id.
class LargestFirst {
 public:
  LargestFirst(std::span<const float> logits, std::span<int32_t> ids) : logits_(logits), ids_(ids) {}
  size_t ordered() const { return ordered_; }

  // Sorts the first `count`; the sorted part grows.
  void order_to(size_t count) {
    const auto better = [&](int32_t a, int32_t b) {
      const float x = logits_[static_cast<size_t>(a)], y = logits_[static_cast<size_t>(b)];
      return larger(x, y) || (!larger(y, x) && a < b);
    };
    const auto at = [&](size_t index) { return ids_.begin() + static_cast<std::ptrdiff_t>(index); };
    if (count < ids_.size()) std::nth_element(at(ordered_), at(count), ids_.end(), better);
    std::sort(at(ordered_), at(count), better);
    ordered_ = count;
  }

 private:
  std::span<const float> logits_;
  std::span<int32_t> ids_;
  size_t ordered_ = 0;
};

double counter_uniform(uint64_t seed, uint64_t counter) { return unit_interval(mix64(mix64(seed) ^ counter)); }

Sampler::Sampler(const SamplingOptions& options, int64_t vocab)
    : options_(options),
      order_(static_cast<size_t>(vocab)),
      weights_(static_cast<size_t>(vocab)),
      sums_(chunks_of(static_cast<size_t>(vocab))),
      found_(chunks_of(static_cast<size_t>(vocab))),
      maxima_(blocks_of(static_cast<size_t>(vocab))) {}

Sampler::Sampler(int64_t vocab) : Sampler(SamplingOptions{}, vocab) {}

int64_t Sampler::memory_bytes(int64_t vocab) {
  const auto count = static_cast<size_t>(vocab);
  return static_cast<int64_t>(count * (sizeof(int32_t) + sizeof(double)) +
                              chunks_of(count) * (sizeof(double) + sizeof(int32_t)) + blocks_of(count) * sizeof(float));
}

int32_t Sampler::pick(const SamplingOptions& options, std::span<const float> logits, int64_t position) {
  const int32_t best = first_of_largest(logits);
  const float top = logits[static_cast<size_t>(best)];
  if (options.temperature <= 0 || options.top_k == 1 || !std::isfinite(top)) return best;
  const double uniform = counter_uniform(options.seed, static_cast<uint64_t>(position));
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size()))
    return draw_of_top_k(options, logits, top, uniform);
  weigh(options, logits, top);
  return options.top_p < 1.0 ? draw_of_top_p(options, logits, uniform) : draw_any(uniform, best);
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
  each_chunk(sums_.size(), [&](size_t chunk) {
    double sum = 0;
    for (size_t id = chunk * kChunk; id < std::min(logits.size(), (chunk + 1) * kChunk); ++id)
      sum += weights_[id] = weight_of(logits[id], top, options);
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

// Writes the ids for which fits(id) says true to order_, in ascending order, and returns their number.
template <typename Fits>
size_t Sampler::collect(const Fits& fits) {
  each_chunk(found_.size(), [&](size_t chunk) {
    int32_t* to = order_.data() + chunk * kChunk;
    int32_t* const from = to;
    for (size_t id = chunk * kChunk; id < std::min(order_.size(), (chunk + 1) * kChunk); ++id) {
      *to = static_cast<int32_t>(id);
      to += fits(id) ? 1 : 0;
    }
    found_[chunk] = static_cast<int32_t>(to - from);
  });
  auto end = order_.begin();
  for (size_t chunk = 0; chunk < found_.size(); ++chunk)
    end = std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(chunk * kChunk), found_[chunk], end);
  return static_cast<size_t>(end - order_.begin());
}

// A logit that at least top_k reach: the top_k-th largest of those that are the largest of their blocks.
float Sampler::least_of_top_k(size_t top_k, std::span<const float> logits) {
  if (top_k > maxima_.size()) return -std::numeric_limits<float>::infinity();
  parallel_for(static_cast<int64_t>(maxima_.size()), kChunk / kBlock, [&](int64_t begin, int64_t end, int) {
    for (auto block = static_cast<size_t>(begin); block < static_cast<size_t>(end); ++block)
      maxima_[block] = largest(logits.subspan(block * kBlock, std::min(kBlock, logits.size() - block * kBlock)));
  });
  const auto at = maxima_.begin() + static_cast<std::ptrdiff_t>(top_k) - 1;
  std::nth_element(maxima_.begin(), at, maxima_.end(), std::greater<>());
  return *at;
}

// draw_any() among the top_k largest, of which the first that together exceed top_p.
int32_t Sampler::draw_of_top_k(const SamplingOptions& options, std::span<const float> logits, float top,
                               double uniform) {
  const auto top_k = static_cast<size_t>(options.top_k);
  const float least = least_of_top_k(top_k, logits);
  const size_t count = collect([&](size_t id) { return logits[id] >= least; });
  LargestFirst largest(logits, std::span(order_).first(count));
  const size_t most = std::min(top_k, count);
  largest.order_to(most);
  double sum = 0;
  for (size_t i = 0; i < most; ++i) {
    const auto id = static_cast<size_t>(order_[i]);
    sum += weights_[id] = weight_of(logits[id], top, options);
  }
  return *draw_of_ordered(largest, most, options.top_p * sum, uniform);
}

// The same among all. Ids of less than (1 - top_p) of the sum / their number are not needed: together they have less
// than 1 - top_p of it.
int32_t Sampler::draw_of_top_p(const SamplingOptions& options, std::span<const float> logits, double uniform) {
  const double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0), mass = options.top_p * sum;
  const double least = std::max(0.0, (1 - options.top_p) * sum / static_cast<double>(logits.size()));
  for (const double needed : {least, 0.0}) {  // all of them where rounding left too few
    const size_t count = collect([&](size_t id) { return weights_[id] >= needed; });
    LargestFirst largest(logits, std::span(order_).first(count));
    if (const std::optional<int32_t> drawn = draw_of_ordered(largest, count, mass, uniform, needed > 0)) return *drawn;
  }
  return order_.front();
}

// The id at which the weights of the first that have `mass` together, at most `most`, exceed `uniform` times theirs.
// Nothing where all have less and `or_more` says that there are others.
std::optional<int32_t> Sampler::draw_of_ordered(LargestFirst& largest, size_t most, double mass, double uniform,
                                                bool or_more) const {
  const auto weight = [&](size_t index) { return weights_[static_cast<size_t>(order_[index])]; };
  double held = 0;
  size_t kept = 0;
  for (; kept < most && (kept == 0 || held < mass); ++kept) {
    if (kept == largest.ordered()) largest.order_to(std::min(most, 64 + 8 * kept));
    held += weight(kept);
  }
  if (or_more && held < mass) return std::nullopt;
  double left = uniform * held;
  for (size_t i = 0; i < kept; ++i)
    if ((left -= weight(i)) < 0) return order_[i];
  while (kept > 1 && weight(kept - 1) == 0) --kept;
  return order_[kept - 1];
}

}  // namespace headroom
