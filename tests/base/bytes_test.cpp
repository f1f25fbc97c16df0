#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/count_text.h"
#include "base/error.h"
#include "base/least_bytes.h"

namespace headroom {

TEST(Bytes, ParsesUnits) {
  EXPECT_EQ(parse_bytes("12"), 12);
  EXPECT_EQ(parse_bytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1.5 MiB"), 3 << 19);
  EXPECT_EQ(parse_bytes("3kb"), 3000);
  EXPECT_EQ(parse_bytes(format_bytes(17)), 17);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993);
}

TEST(Bytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "GiB", "-1", "12 parsecs", "1.2.3GiB", "99999999999TiB"})
    EXPECT_THROW(parse_bytes(text), Error) << text;
}

TEST(Bytes, Formats) {
  EXPECT_EQ(format_bytes(17), "17 bytes");
  EXPECT_EQ(format_bytes(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(format_bytes(640 << 10), "640 KiB");
}

TEST(Bytes, LeastSizesAreRoundedUp) {
  EXPECT_EQ(format_least_bytes(2236646144), "2.09 GiB");  // 2.083
  EXPECT_EQ(format_least_bytes(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(format_least_bytes(0), "0 bytes");
  for (int64_t bytes = 1; bytes < int64_t{1} << 50; bytes += bytes / 7 + 1)
    EXPECT_GE(parse_bytes(format_least_bytes(bytes)), bytes) << bytes;
}

TEST(Counts, ThreeDigitsAndAUnit) {
  EXPECT_EQ(format_count(9999), "9999");
  EXPECT_EQ(format_count(260400), "260 K");
  EXPECT_EQ(format_count(134515008), "135 M");
  EXPECT_EQ(format_count(999885952), "1 B");
  EXPECT_EQ(format_count(999600), "1 M");
  EXPECT_EQ(format_count(7241732096), "7.24 B");
}

}  // namespace headroom
