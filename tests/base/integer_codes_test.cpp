#include "base/integer_codes.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(IntegerCodes, NamesGoBothWays) {
  EXPECT_EQ(integer_codes("int8"), (IntegerCodes{8, 0}));
  EXPECT_EQ(integer_codes("int4"), (IntegerCodes{4, 32}));
  EXPECT_EQ(integer_codes("int4-row"), (IntegerCodes{4, 0}));
  EXPECT_EQ(integer_codes("int8-g128"), (IntegerCodes{8, 128}));
  for (const char* name : {"int8", "int4", "int4-row", "int8-g32", "int4-g8", "int4-g65536"})
    EXPECT_EQ(integer_codes_name(*integer_codes(name)), name);
  EXPECT_EQ(integer_codes_name({4, 32}), "int4");
  for (const char* name : {"", "nf4", "int", "int16", "int4-", "int4-g", "int4-g0", "int4-g12", "int4-g-8", "int4-g8 ",
                           "int4-g99999999999999999999", "int4-rows", "int8_g32", "int4-g131072"})
    EXPECT_FALSE(integer_codes(name)) << name;
}

TEST(IntegerCodes, TheNearestGroupDividesTheRow) {
  EXPECT_EQ(nearest_group(576, 128), 144);
  EXPECT_EQ(nearest_group(128, 48), 32);
  EXPECT_EQ(nearest_group(16, 32), 16);
  EXPECT_EQ(nearest_group(20, 32), 0);
}

}  // namespace
}  // namespace headroom
