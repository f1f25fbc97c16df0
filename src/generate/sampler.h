// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

struct SamplingOptions {
  double temperature = 1.0;  // 0 = greedy
  double top_p = 1.0;
  int64_t top_k = 0;  // 0 = all
  uint64_t seed = 42;
};

// Deterministic by seed: the random number of position `n` is a function of (seed, n) alone (counter_uniform).
// Holds one index per vocabulary entry; no heap call after construction.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, int64_t vocab);
  // The token for position `position`; ties go to the lower id.
  int32_t pick(std::span<const float> logits, int64_t position);

 private:
  int32_t greedy(std::span<const float> logits) const;
  SamplingOptions options_;
  std::vector<int32_t> order_;
  std::vector<double> weights_;
};

// A uniform number in [0, 1) from a counter.
double counter_uniform(uint64_t seed, uint64_t counter);

}  // namespace headroom
