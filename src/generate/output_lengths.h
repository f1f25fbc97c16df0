// How long answers turn out to be, measured against the max_tokens that was asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

// A histogram of drawn / max_tokens over the answers that ended of themselves, of fixed size. Before there is data it
// is a prior: kPrior answers of full length. Once kMost answers are counted all counts are halved, so that it follows
// what is asked for lately. Used by one thread.
class OutputLengths {
 public:
  static constexpr double kQuantile = 0.6;  // of answers that are no longer than expected() says
  static constexpr int64_t kPrior = 4;
  static constexpr int64_t kMost = 1024;

  // An answer of so many tokens of at most `most`, which is at least 1.
  void add(int64_t drawn, int64_t most);
  // Tokens that an answer of at most `most` will have that has `drawn` already: the quantile of those that had more.
  // From `drawn` to `most`.
  int64_t expected(int64_t drawn, int64_t most) const;

 private:
  static constexpr size_t kBuckets = 32;
  static size_t bucket(int64_t drawn, int64_t most);

  std::array<int64_t, kBuckets> counts_{};
  int64_t total_ = 0;
};

}  // namespace headroom
