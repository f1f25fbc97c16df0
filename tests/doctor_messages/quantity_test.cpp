#include "doctor/messages/quantity.h"

#include <gtest/gtest.h>

#include "doctor/messages/word_scan.h"

namespace headroom::doctor {
namespace {

int64_t bytes(const char* text, uint32_t units) {
  const auto quantity = parse_quantity(text, units);
  return quantity ? quantity->bytes : -1;
}

TEST(Quantity, UnitsAndTheirMeaning) {
  EXPECT_EQ(bytes("12.5GiB", kIec), 13421772800);
  EXPECT_EQ(bytes("12,5 GiB", kIec), 13421772800);
  EXPECT_EQ(bytes("4,096 MiB", kIec), 4294967296);
  EXPECT_EQ(bytes("1,234.5 MiB", kIec), 1294467072);
  EXPECT_EQ(bytes("1.234,5 MiB", kIec), 1294467072);
  EXPECT_EQ(bytes("0 bytes", kIec), 0);
  EXPECT_EQ(bytes("1 GB", kSi), 1073741824);
  EXPECT_EQ(bytes("1 GB", kDecimal), 1000000000);
  EXPECT_EQ(bytes("16384K", kLetter), 16777216);
  EXPECT_EQ(bytes("8Gi", kLetter), 8589934592);
  EXPECT_EQ(bytes("123", kBare), 123);
  EXPECT_EQ(bytes("4585490524328388608", kBare), 4585490524328388608);
  EXPECT_EQ(bytes("12,373,894,656 bytes", kIec), 12373894656);
}

TEST(Quantity, Refused) {
  EXPECT_EQ(bytes("1 GB", kIec), -1);
  EXPECT_EQ(bytes("123", kIec), -1);
  EXPECT_EQ(bytes("12.5 Gi", kIec), -1);  // a truncated GiB
  EXPECT_EQ(bytes("12.5 M", kIec), -1);
  EXPECT_EQ(bytes("1.2.3 GiB", kIec), -1);
  EXPECT_EQ(bytes("18446744073709551616", kBare), -1);
  EXPECT_EQ(bytes("99999999999 TiB", kIec), -1);
  EXPECT_EQ(bytes("GiB", kIec), -1);
  EXPECT_EQ(bytes("-1 GiB", kIec), -1);
  EXPECT_EQ(bytes("", kAnyBinary | kBare), -1);
}

TEST(Quantity, ResolutionIsOneUnitOfTheLastDigit) {
  EXPECT_EQ(parse_quantity("2.22 GiB", kIec)->resolution, 10737418);
  EXPECT_EQ(parse_quantity("228.38 MiB", kIec)->resolution, 10486);
  EXPECT_EQ(parse_quantity("39.4 GiB", kIec)->resolution, 107374182);
  EXPECT_EQ(parse_quantity("5 bytes", kIec)->resolution, 1);
}

TEST(Quantity, CountsMayBeCutAtTheEnd) {
  const Squeezed cut("tokens (12");
  EXPECT_FALSE(whole_number_at(cut, 7));
  EXPECT_TRUE(whole_number_at(cut, 7, true));
  const Squeezed whole("tokens (12,345)");
  EXPECT_EQ(whole_number_at(whole, 7)->value, 12345);
  const Squeezed list("(0.9, 19.84 GiB)");
  const auto real = real_at(list, 1);
  ASSERT_TRUE(real);
  EXPECT_DOUBLE_EQ(real->value, 0.9);
  EXPECT_EQ(quantity_at(list, real->end + 1, kIec)->bytes, 21303037788);
}

TEST(Words, AllAreFoundWhereverTheyStand) {
  const std::vector<WordScan::Word> words = {
      {"out of memory", 1}, {"oom-", 2}, {"memory", 4}, {"a_very_long_word_indeed", 8}};
  const WordScan scan(words);
  for (size_t before = 0; before < 40; ++before) {
    for (const auto& word : words) {
      const std::string text = std::string(before, 'm') + std::string(word.text) + "o";
      const auto hit = scan.next(text, 0);
      EXPECT_EQ(hit.position, before) << text;
      EXPECT_NE(scan.tags(text) & word.tag, 0u);
    }
  }
  EXPECT_EQ(scan.tags("OUT OF MEMORY"), 5u);
  EXPECT_EQ(scan.tags("out of memor"), 0u);
  EXPECT_EQ(scan.tags(""), 0u);
  EXPECT_EQ(scan.tags("oom"), 0u);
}

}  // namespace
}  // namespace headroom::doctor
