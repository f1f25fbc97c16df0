// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace headroom {

// How a token is sampled. Settings apply in vLLM's order: logit_bias, penalties (repetition, frequency, presence),
// temperature, min_p, top_k, top_p. A grammar's mask is applied before the temperature; vLLM applies it first, with the
// same result, since no bias or penalty makes a masked token possible again.
struct SamplingOptions {
  double temperature = 1.0;  // 0 = greedy
  double top_p = 1.0;
  int64_t top_k = 0;  // 0 = all
  uint64_t seed = 42;
  double min_p = 0;  // least probability, relative to the likeliest token's; 0 = none
  // Applied to the logits by TokenDrawer, not by Sampler:
  double presence_penalty = 0;    // subtracted from the logit of a token that was sampled before
  double frequency_penalty = 0;   // the same, for each occurrence
  double repetition_penalty = 1;  // > 0; logits of tokens of the prompt and the text: positive / it, negative * it
  std::vector<std::pair<int32_t, float>> logit_bias{};  // (id, what is added to its logit)
};

class LargestFirst;

// Deterministic by seed: the random number of position `n` depends only on (seed, n) (counter_uniform), and the token
// only on that number and the logits, whatever the threads. Holds an index and a weight per vocabulary entry; no heap
// call after construction. NaN logits are never sampled. Applies temperature, min_p, top_k and top_p; TokenDrawer
// applies logit bias and penalties.
class Sampler {
 public:
  // For texts with their own options: only the pick() that takes them.
  explicit Sampler(int64_t vocab);
  Sampler(const SamplingOptions& options, int64_t vocab);
  // The token for position `position`; ties go to the lower id.
  int32_t pick(std::span<const float> logits, int64_t position) { return pick(options_, logits, position); }
  int32_t pick(const SamplingOptions& options, std::span<const float> logits, int64_t position);

  // Heap of a sampler.
  static int64_t memory_bytes(int64_t vocab);

 private:
  int32_t first_of_largest(std::span<const float> logits);
  void weigh(const SamplingOptions& options, std::span<const float> logits, float top);
  int32_t draw_any(double uniform, int32_t otherwise) const;
  template <typename Fits>
  size_t collect(const Fits& fits);
  float least_of_top_k(size_t top_k, std::span<const float> logits);
  int32_t draw_of_top_k(const SamplingOptions& options, std::span<const float> logits, float top, double uniform);
  int32_t draw_of_top_p(const SamplingOptions& options, std::span<const float> logits, double uniform);
  std::optional<int32_t> draw_of_ordered(LargestFirst& largest, size_t most, double mass, double uniform,
                                         bool or_more = false) const;

  SamplingOptions options_;
  std::vector<int32_t> order_;   // ids that may be drawn, by logit as far as needed
  std::vector<double> weights_;  // exp((logit - top) / temperature), by id; 0 below min_p
  std::vector<double> sums_;     // of the weights of each chunk of ids
  std::vector<int32_t> found_;   // ids of each chunk in order_
  std::vector<float> maxima_;    // the largest logit of each block of ids
};

// A uniform number in [0, 1) from a counter.
double counter_uniform(uint64_t seed, uint64_t counter);

}  // namespace headroom
