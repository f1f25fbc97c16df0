#include "formats/json.h"

#include <algorithm>

#include "expect_error.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

std::string message(const std::string& text) {
  try {
    parse_json(text, "a.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_FALSE(error.remedy().empty());
    return error.what();
  }
  return "accepted";
}

TEST(ParseJson, NamesTheSourceAndThePlace) {
  EXPECT_EQ(parse_json(R"({"a": [1, "two"]})", "a.json"), (Json{{"a", {1, "two"}}}));
  const std::string text = message("{\"a\":\n  x}");
  EXPECT_THAT(text, testing::StartsWith("a.json: malformed JSON: "));
  EXPECT_THAT(text, testing::HasSubstr("line 2, column 3"));
}

TEST(ParseJson, NulBytesAreRefusedWhereverTheyStand) {
  const std::string nul(1, '\0');
  EXPECT_THAT(message("{}" + nul), testing::HasSubstr("NUL byte at byte 2"));
  EXPECT_THAT(message("{}" + nul + "and more"), testing::HasSubstr("NUL byte at byte 2"));
  EXPECT_THAT(message("[1," + nul + "2]"), testing::HasSubstr("NUL byte at byte 3"));
  EXPECT_THAT(message("\"a" + nul + "b\""), testing::HasSubstr("NUL byte at byte 2"));
  EXPECT_THAT(message(nul), testing::HasSubstr("NUL byte at byte 0"));
  EXPECT_EQ(parse_json(R"("a\u0000b")", "a.json"), std::string("a\0b", 3)) << "written as an escape it is text";
}

TEST(ParseJson, ErrorsAreShortAndPrintable) {
  const std::string samples[] = {"\"" + std::string(100'000, 'x') + "\n",
                                 "[\"" + std::string(100'000, '\x01'),
                                 "{\"k\": 1" + std::string(50'000, '0') + "e",
                                 "\x1b[31mred",
                                 "\"\xff\xfe\"",
                                 "\"\xe4\xb8\xad\x1b]0;title\x07"};
  for (const std::string& sample : samples) {
    const std::string text = message(sample);
    EXPECT_THAT(text, testing::StartsWith("a.json: malformed JSON: "));
    EXPECT_LE(text.size(), 230u) << text;
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) << text;
  }
}

TEST(ParseJson, DeepNestingIsRefused) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'), "a.json").is_array());
  EXPECT_THAT(message(std::string(65, '[') + std::string(65, ']')), testing::HasSubstr("byte 64"));
  EXPECT_THAT(message(std::string(1'000'000, '[')), testing::HasSubstr("64 levels"));
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\"", "a.json").is_string());
}

TEST(ReadJson, LimitsAndMissingFiles) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.write("a.json", "[1, 2, 3]");
  EXPECT_EQ(read_json(file), (Json{1, 2, 3}));
  EXPECT_EQ(read_json(file, 9), (Json{1, 2, 3}));
  expect_error(ErrorKind::format, "9 bytes", [&] { read_json(file, 8); });
  expect_error(ErrorKind::usage, "missing.json", [&] { read_json(directory / "missing.json"); });
}

}  // namespace
}  // namespace headroom
