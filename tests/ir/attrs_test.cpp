// Attributes are found by their whole names, whatever others a node has.
#include "ir/attrs.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

// More names than there are bits for them: most share one with another.
std::string name(int number) { return "name_" + std::to_string(number); }

TEST(Attrs, NamesThatShareABitAreToldApart) {
  constexpr int kNames = 300;
  for (int one = 0; one < kNames; ++one) {
    const Attrs attrs{{name(one).c_str(), int64_t{one}}};
    for (int other = 0; other < kNames; ++other) {
      EXPECT_EQ(attrs.has(name(other)), one == other);
      EXPECT_EQ(attrs.integer(name(other), -1), one == other ? one : -1);
    }
  }
}

TEST(Attrs, AreFoundInCopiesAndAfterChanges) {
  Attrs first;
  for (int number = 0; number < 100; ++number) first.set(name(number), int64_t{number});
  Attrs second = first;
  second.set(name(7), int64_t{70}).set("last", 1.5).set("", std::string("no name"));
  EXPECT_EQ(first.integer(name(7)), 7);
  EXPECT_FALSE(first.has("last") || first.has(""));
  EXPECT_EQ(second.integer(name(7)), 70);
  EXPECT_EQ(second.real("last"), 1.5);
  EXPECT_EQ(second.text(""), "no name");
  for (int number = 8; number < 100; ++number) EXPECT_EQ(second.integer(name(number)), number);
  EXPECT_FALSE(Attrs().has("last"));
}

}  // namespace
}  // namespace headroom
