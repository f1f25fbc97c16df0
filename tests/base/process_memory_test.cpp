#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace headroom {

TEST(RecordedPeak, IsTheKernelsOrWhatWasRecordedAboveIt) {
  RecordedPeak peak;
  EXPECT_GT(peak.bytes(), 0);
  const int64_t above = int64_t{1} << 50;
  peak.include(above);
  peak.include(above - 4096);
  EXPECT_EQ(peak.bytes(), above);
}

// Dropped pages of code are loaded again when the code runs.
TEST(ReleaseWhatIsBehind, GivesBackFreeMemoryAndGoesOn) {
  {
    std::vector<std::unique_ptr<char[]>> small;
    for (int i = 0; i < 20000; ++i) small.push_back(std::make_unique<char[]>(512));
    for (const std::unique_ptr<char[]>& block : small) block[0] = 1;
  }
  const int64_t before = resident_bytes();
  release_what_is_behind();
  const int64_t after = resident_bytes();
  EXPECT_LE(after, before);
  EXPECT_GT(after, 0);
}

}  // namespace headroom
