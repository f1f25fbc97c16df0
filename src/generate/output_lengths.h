// The lengths of answers relative to the requested max_tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

// A histogram of generated / max_tokens over the answers that the model ended itself, of fixed size. It starts with a
// prior: kPrior answers of full length. Once kMost answers are counted all counts are halved, so that it follows recent
// requests. Used by one thread.
class OutputLengths {
 public:
  static constexpr double kQuantile = 0.6;  // of answers not longer than expected() says
  static constexpr int64_t kPrior = 4;
  static constexpr int64_t kMost = 1024;

  // Counts an answer of so many tokens out of at most `most`, which is at least 1.
  void add(int64_t drawn, int64_t most);
  // The expected length of an answer of at most `most` tokens that has `drawn` already: the quantile of those that had
  // more. From `drawn` to `most`.
  int64_t expected(int64_t drawn, int64_t most) const;

 private:
  static constexpr size_t kBuckets = 32;
  static size_t bucket(int64_t drawn, int64_t most);

  std::array<int64_t, kBuckets> counts_{};
  int64_t total_ = 0;
};

}  // namespace headroom
