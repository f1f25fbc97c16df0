// The most blocks that a set of sequences is expected to hold at any time until the last has ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// The expectation for one sequence.
struct ExpectedCourse {
  int64_t steps = 0;       // until it ends
  int64_t tokens = 0;      // that it will have in blocks once the missing ones of its prompt are read
  int64_t blocks = 0;      // that it has, or that are kept for it
  bool grows = true;       // beyond `blocks`
  int64_t gives_back = 0;  // when it ends
};

// The most blocks that they hold at any time beyond those held now: they take a token in every step and return their
// blocks one after the other. `courses` are sorted. Partly filled blocks count as half.
int64_t expected_growth(std::span<ExpectedCourse> courses, int64_t block_tokens);

}  // namespace headroom
