#include "formats/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "temporary_directory.h"

namespace headroom {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const TemporaryDirectory directory;
  LineReader reader(directory.write("f", text));
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) lines.emplace_back(line);
  std::string_view more;
  EXPECT_FALSE(reader.next(more));
  return lines;
}

TEST(LineReader, GivesEveryLine) {
  EXPECT_THAT(lines_of(""), testing::IsEmpty());
  EXPECT_THAT(lines_of("\n"), testing::ElementsAre(""));
  EXPECT_THAT(lines_of("a\n\nbc\n"), testing::ElementsAre("a", "", "bc"));
  EXPECT_THAT(lines_of("a\nb"), testing::ElementsAre("a", "b"));
}

TEST(LineReader, LinesMayLieAcrossItsBuffer) {
  std::string text;
  std::vector<std::string> lines;
  for (size_t i = 0; i < 200; ++i) lines.push_back(std::string(i * 37 % 3000, static_cast<char>('a' + i % 26)));
  for (const std::string& line : lines) text += line + "\n";
  EXPECT_EQ(lines_of(text), lines);
}

TEST(LineReader, LeavesOutLinesThatAreTooLong) {
  const std::string longest(LineReader::kLongest, 'x'), longer(LineReader::kLongest + 1, 'y'), far(1 << 20, 'z');
  EXPECT_THAT(lines_of("a\n" + longest + "\n" + longer + "\n" + far + "\nb\n"),
              testing::ElementsAre("a", longest, "b"));
  EXPECT_THAT(lines_of("a\n" + far), testing::ElementsAre("a"));
  EXPECT_THAT(lines_of(far + "\na"), testing::ElementsAre("a"));
}

}  // namespace
}  // namespace headroom
