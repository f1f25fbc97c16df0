#include "generate/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/threads.h"

namespace headroom {
namespace {

constexpr size_t kPiece = 2048;      // ids whose exponentials are summed in one piece
constexpr int64_t kAllocation = 32;  // bytes that the heap adds to a request, at most

size_t pieces_of(size_t vocab) { return (vocab + kPiece - 1) / kPiece; }

float number_of(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

}  // namespace

LogProbabilities::LogProbabilities(int64_t vocab, int64_t most) : sums_(pieces_of(static_cast<size_t>(vocab))) {
  ranked_.reserve(static_cast<size_t>(std::min(most, vocab)));
}

int64_t LogProbabilities::memory_bytes(int64_t vocab, int64_t most) {
  return static_cast<int64_t>(pieces_of(static_cast<size_t>(vocab)) * sizeof(double)) +
         std::min(most, vocab) * static_cast<int64_t>(sizeof(int32_t)) + 2 * kAllocation;
}

int64_t LogProbabilities::score_bytes(int64_t ranked) {
  return ranked > 0 ? ranked * static_cast<int64_t>(sizeof(RankedToken)) + kAllocation : 0;
}

double LogProbabilities::log_of_sum(std::span<const float> logits, float top) {
  parallel_for(static_cast<int64_t>(sums_.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (auto piece = static_cast<size_t>(begin); piece < static_cast<size_t>(end); ++piece) {
      double sum = 0;
      for (size_t id = piece * kPiece; id < std::min(logits.size(), (piece + 1) * kPiece); ++id)
        sum += std::exp(static_cast<double>(number_of(logits[id])) - top);
      sums_[piece] = sum;
    }
  });
  return std::log(std::accumulate(sums_.begin(), sums_.end(), 0.0));
}

void LogProbabilities::rank(std::span<const float> logits, int64_t count) {
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = number_of(logits[static_cast<size_t>(a)]), y = number_of(logits[static_cast<size_t>(b)]);
    return x > y || (x == y && a < b);
  };
  ranked_.clear();
  for (int32_t id = 0; id < static_cast<int32_t>(logits.size()) && count > 0; ++id) {
    if (static_cast<int64_t>(ranked_.size()) == count) {
      if (!likelier(id, ranked_.front())) continue;
      std::pop_heap(ranked_.begin(), ranked_.end(), likelier);
      ranked_.pop_back();
    }
    ranked_.push_back(id);
    std::push_heap(ranked_.begin(), ranked_.end(), likelier);
  }
  std::sort_heap(ranked_.begin(), ranked_.end(), likelier);
}

SequenceToken LogProbabilities::score(std::span<const float> logits, int32_t id, int64_t ranked) {
  float top = -std::numeric_limits<float>::infinity();
  for (const float logit : logits) top = std::max(top, number_of(logit));
  const double sum = std::isfinite(top) ? log_of_sum(logits, top) : 0;
  const auto logprob = [&](int32_t token) {
    const float logit = number_of(logits[static_cast<size_t>(token)]);
    return logit == top ? static_cast<float>(-sum) : static_cast<float>(static_cast<double>(logit) - top - sum);
  };
  SequenceToken scored{id, logprob(id), {}};
  rank(logits, std::min(ranked, static_cast<int64_t>(logits.size())));
  scored.best.reserve(ranked_.size());
  for (const int32_t token : ranked_) scored.best.push_back({token, logprob(token)});
  return scored;
}

}  // namespace headroom
