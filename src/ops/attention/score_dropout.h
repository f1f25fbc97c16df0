// Dropout of attention's probabilities (Srivastava et al. 2014): after the softmax, whose sum keeps every term, a
// probability is multiplied by 0 or by `scale`. Which ones are dropped is a function of the run's seed, the step, the
// node (attribute "tensor") and the score; it is drawn again wherever it is needed and never stored.
//
// Each row of scores (batch row, head, query) has its own key for the draws. Two neighbouring attention keys of a row
// share 32 bits (ops/stream/counter_bits.h): the even one uses the lower 16.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "ir/attrs.h"
#include "ops/stream/counter_bits.h"

namespace headroom {

// A value is dropped if 16 random bits are below `below`, else multiplied by `scale`; the expectation is exact.
struct DropoutRate {
  uint32_t below = 0;  // out of 2^16; 0: nothing is dropped
  float scale = 1;     // factor on kept values

  DropoutRate() = default;
  // `rate` is in [0, 1).
  explicit DropoutRate(double rate)
      : below(static_cast<uint32_t>(std::min(std::lround(rate * 0x1p16), 0xffffl))),
        scale(static_cast<float>(0x1p16 / (0x1p16 - below))) {}
};

// The attributes of a node that its dropout depends on.
struct DropoutAttrs {
  DropoutRate rate;
  uint64_t tensor = 0;  // identifies the node

  explicit DropoutAttrs(const Attrs& attrs)
      : rate(attrs.real("dropout", 0)), tensor(static_cast<uint64_t>(attrs.integer("tensor", 0))) {}
};

// Dropout of one call's scores.
struct ScoreDropout {
  DropoutRate rate = {};
  uint64_t key = 0;   // step_key()
  int64_t first = 0;  // rows of scores of the step's global batch before this call's

  bool drops() const { return rate.below > 0; }
  // The key of a row [batch row, head, query] of the call's scores.
  uint64_t row_key(int64_t row) const { return mix64(key ^ static_cast<uint64_t>(first + row)); }
  // Whether the probability of `key` is dropped from the row with this row_key().
  bool dropped(uint64_t row_key, int64_t key) const {
    const uint32_t bits = counter_bits(row_key, static_cast<uint64_t>(key / 2));
    return (key % 2 == 0 ? bits & 0xffff : bits >> 16) < rate.below;
  }
};

// The row keys of consecutive queries, as separate halves.
template <int64_t kRows>
struct RowKeys {
  std::array<uint32_t, kRows> low;
  std::array<uint32_t, kRows> high;

  // Fills the keys of the rows from `row`. Keys past the last query have no effect.
  void fill(const ScoreDropout& dropout, int64_t row) {
    for (int64_t i = 0; i < kRows; ++i) {
      const uint64_t key = dropout.row_key(row + i);
      low[static_cast<size_t>(i)] = static_cast<uint32_t>(key);
      high[static_cast<size_t>(i)] = static_cast<uint32_t>(key >> 32);
    }
  }
};

}  // namespace headroom
