// How many blocks a set of sequences is expected to hold at most, from now until the last has ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// What is expected of one sequence.
struct ExpectedCourse {
  int64_t steps = 0;       // until it ends
  int64_t tokens = 0;      // that it will have in blocks when those of its prompt that are missing are read
  int64_t blocks = 0;      // that it has, or that are kept for it
  bool grows = true;       // beyond `blocks`
  int64_t gives_back = 0;  // when it ends
};

// The most that they hold at once beyond what they hold now: they take a token in every step and give their blocks back
// one after the other. `courses` are sorted. Blocks that are begun count as half.
int64_t expected_growth(std::span<ExpectedCourse> courses, int64_t block_tokens);

}  // namespace headroom
