#include "base/find_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

namespace headroom {
namespace {

std::string random_text(std::mt19937& draw, size_t size, int letters) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + static_cast<int>(draw() % static_cast<unsigned>(letters)));
  return text;
}

// Few letters, so that most places match in part. Lengths lie on both sides of a step of 16 places and of 32 bytes.
TEST(FindText, FindsWhatTheStandardLibraryFinds) {
  std::mt19937 draw(1);
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_text(draw, draw() % 100, 2 + round % 2);
    const std::string wanted = random_text(draw, draw() % (round % 3 == 0 ? 40 : 7), 2);
    const size_t from = draw() % 110;
    ASSERT_EQ(find_text(text, wanted, from), std::string_view(text).find(wanted, from))
        << '"' << wanted << "\" in \"" << text << "\" from " << from;
  }
}

// In a text, in parts of it and in others, while some are known and after they are not.
TEST(FindText, FindsTheSameInAKnownText) {
  std::mt19937 draw(2);
  const std::string text = random_text(draw, 3000, 20), other = random_text(draw, 2000, 26);
  const auto same = [&](std::string_view in) {
    for (int round = 0; round < 3000; ++round) {
      const size_t at = draw() % 1900, from = draw() % 100;
      const std::string wanted = round % 2 ? random_text(draw, 1 + draw() % 6, 26)
                                           : std::string((round % 4 ? text : other).substr(at, draw() % 40));
      ASSERT_EQ(find_text(in, wanted, from), in.find(wanted, from)) << wanted;
    }
  };
  {
    const KnownText known(text);
    same(text), same(std::string_view(text).substr(500, 1200)), same(other);
    auto second = std::make_unique<KnownText>(other);
    const KnownText third(std::string_view(other).substr(0, 10));
    same(text), same(other);
    second.reset();
    same(text), same(other);
  }
  same(text);
}

TEST(FindText, FindsEveryPlaceOfALongTextOnce) {
  for (const size_t size : {1U, 2U, 15U, 16U, 17U, 32U, 33U, 60U}) {
    const std::string wanted = "x" + std::string(size - 1, 'y');
    for (size_t before = 0; before < 70; ++before) {
      const std::string text = std::string(before, 'y') + wanted + std::string(before % 20, 'y');
      EXPECT_EQ(find_text(text, wanted), before);
      EXPECT_EQ(find_text(text, wanted, before + 1), std::string_view::npos);
    }
  }
}

TEST(FindText, TakesBytesOfAnyValueAndEmptyTexts) {
  const std::string zeros("\0\xff\0\x80", 4);
  EXPECT_EQ(find_text(zeros, std::string_view("\0\x80", 2)), 2U);
  EXPECT_EQ(find_text("", ""), 0U);
  EXPECT_EQ(find_text("ab", "", 2), 2U);
  EXPECT_EQ(find_text("ab", "", 3), std::string_view::npos);
  EXPECT_EQ(find_text("", "a"), std::string_view::npos);
}

}  // namespace
}  // namespace headroom
