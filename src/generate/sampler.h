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

// Deterministic by seed: the random number of position `n` is a function of (seed, n) alone (counter_uniform), and the
// token one of that number and the logits, whatever the threads. Holds an index and a weight per vocabulary entry; no
// heap call after construction. Logits that are not numbers are never drawn.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, int64_t vocab);
  // The token for position `position`; ties go to the lower id.
  int32_t pick(std::span<const float> logits, int64_t position);

 private:
  void weigh(std::span<const float> logits, float top);
  int32_t draw_any(double uniform, int32_t otherwise) const;
  int32_t draw_of_largest(std::span<const float> logits, double uniform);

  SamplingOptions options_;
  std::vector<int32_t> order_;   // by logit, as far as it was needed
  std::vector<double> weights_;  // exp((logit - top) / temperature), by id
  std::vector<double> sums_;     // of the weights of each chunk of ids
};

// A uniform number in [0, 1) from a counter.
double counter_uniform(uint64_t seed, uint64_t counter);

}  // namespace headroom
