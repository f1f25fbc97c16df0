// Log-probabilities of tokens: the softmax of the model's own logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/scheduler.h"

namespace headroom {

// Sums in double, in pieces of ids whose bounds do not depend on the threads: the result depends only on the logits.
// NaN logits count as -inf. Makes no heap call except for its result.
class LogProbabilities {
 public:
  // `most`: the largest `ranked` of score().
  LogProbabilities(int64_t vocab, int64_t most);

  // The token with its log-probability and the `ranked` likeliest tokens, in falling order; ties go to the lower id.
  SequenceToken score(std::span<const float> logits, int32_t id, int64_t ranked);

  // Heap of the object itself, and of the result of one call.
  static int64_t memory_bytes(int64_t vocab, int64_t most);
  static int64_t score_bytes(int64_t ranked);

 private:
  // The natural logarithm of the sum of exp(logit - top).
  double log_of_sum(std::span<const float> logits, float top);
  void rank(std::span<const float> logits, int64_t count);

  std::vector<double> sums_;     // of each piece
  std::vector<int32_t> ranked_;  // a heap whose first is the least likely
};

}  // namespace headroom
