#include "generate/expected_peak.h"

#include <algorithm>

namespace headroom {

// The maximum is reached right before a sequence ends. From the last to end to the first, with those that remain then.
int64_t expected_growth(std::span<ExpectedCourse> courses, int64_t block_tokens) {
  std::ranges::sort(courses, [](const ExpectedCourse& a, const ExpectedCourse& b) { return a.steps > b.steps; });
  int64_t given_back = 0, most = 0, growing = 0, tokens = 0, blocks = 0;
  for (const ExpectedCourse& course : courses) given_back += course.gives_back;
  for (const ExpectedCourse& course : courses) {
    given_back -= course.gives_back;
    if (course.grows) {
      ++growing;
      tokens += course.tokens;
      blocks += course.blocks;
    }
    const int64_t held = (tokens + growing * course.steps + growing * block_tokens / 2) / block_tokens;
    most = std::max(most, held - blocks - given_back);
  }
  return most;
}

}  // namespace headroom
