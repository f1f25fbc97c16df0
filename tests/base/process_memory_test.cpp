#include "base/process_memory.h"

#include <gtest/gtest.h>

namespace headroom {

TEST(RecordedPeak, IsTheKernelsOrWhatWasRecordedAboveIt) {
  RecordedPeak peak;
  EXPECT_GT(peak.bytes(), 0);
  const int64_t above = int64_t{1} << 50;
  peak.include(above);
  peak.include(above - 4096);
  EXPECT_EQ(peak.bytes(), above);
}

}  // namespace headroom
