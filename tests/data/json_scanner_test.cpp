#include "data/json_scanner.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../formats/temporary_directory.h"

namespace headroom {
namespace {

// Whether the scanner accepts the text as one JSON value.
bool accepts(const std::string& text) {
  const RowBytes bytes{text};
  JsonScanner json(bytes);
  try {
    json.skip_value();
    json.expect_end();
    return true;
  } catch (const JsonProblem&) {
    return false;
  }
}

TEST(JsonScanner, AgreesWithAnotherParser) {
  const std::vector<std::string> texts = {
      "",
      "{}",
      "[]",
      "[[],{},[{}]]",
      "{\"a\":1,\"b\":[1,2.5e3,-0]}",
      "[1,]",
      "[,1]",
      "{\"a\"}",
      "{\"a\":}",
      "{,}",
      "{\"a\":1,}",
      "01",
      "-",
      "1.",
      ".5",
      "1e",
      "1e+5",
      "-0.0E-7",
      "true",
      "tru",
      "nul",
      "nulll",
      "\"\\u00e9\"",
      "\"\\ud83d\\ude00\"",
      "\"\\ud83d\"",
      "\"\\ude00\"",
      "\"\\ud83dx\"",
      "\"\\ud83d\\u0041\"",
      "\"\\x\"",
      "\"\t\"",
      "\"\\u12\"",
      "\"\xc3\xa9\"",
      "\"\xc3\"",
      "\"\xed\xa0\x80\"",
      "\"\xf0\x9f\x98\x80\"",
      "\"\xc0\x80\"",
      "\"\xf5\x80\x80\x80\"",
      "[1 2]",
      "{\"a\":1 \"b\":2}",
      "[1}",
      "{\"a\":[}",
      "]",
      "\"open",
      " \n\t{ \"a\" : [ 1 , 2 ] } \r\n",
      "{1:2}",
      "[\"a\" : 1]",
      "[true,false,null]",
      "1 2",
      "\"\\/\\b\\f\\n\\r\\t\\\\\"",
  };
  for (const std::string& text : texts) EXPECT_EQ(accepts(text), nlohmann::json::accept(text)) << text;
}

TEST(JsonScanner, Unescapes) {
  const RowBytes bytes{R"({"k\u0065y":"a\n\u00e9\ud83d\ude00\"z"})"};
  JsonScanner json(bytes);
  json.expect('{');
  EXPECT_EQ(json.string(100), "key");
  json.expect(':');
  EXPECT_EQ(json.string(100), "a\n\xc3\xa9\xf0\x9f\x98\x80\"z");
  json.expect('}');
  json.expect_end();
}

TEST(JsonScanner, TakesTheBeginningOfAStringInWholeCharacters) {
  const std::vector<std::string> beginnings = {"",
                                               "a",
                                               "a",
                                               "a\xc3\xa9",
                                               "a\xc3\xa9",
                                               "a\xc3\xa9",
                                               "a\xc3\xa9",
                                               "a\xc3\xa9\xf0\x9f\x98\x80",
                                               "a\xc3\xa9\xf0\x9f\x98\x80z"};
  for (size_t most = 0; most < beginnings.size(); ++most) {
    const RowBytes bytes{"\"a\\u00e9\xf0\x9f\x98\x80z\" "};
    JsonScanner json(bytes);
    EXPECT_EQ(json.string(most), beginnings[most]) << most;
    json.expect_end();
  }
}

// For any window size, and any position of characters, escapes and numbers in it.
TEST(JsonScanner, ReadsThroughAWindowWhatItReadsInMemory) {
  TemporaryDirectory directory;
  for (size_t shift = 0; shift < 70; ++shift) {
    const std::string before(shift, 'x');
    const std::string text = "{\"" + before + "\":[-12345678901,1.25e-3,true,null,\"\xf0\x9f\x98\x80\\ud83d\\ude00\\n" +
                             before + "\xc3\xa9\"],\"b\":\"" + std::string(300, 'y') + "\"}";
    const auto path = directory.write("row", "12345" + text + "behind");
    const File file = File::open(path);
    std::array<char, RowBytes::kMostAtOnce> window;
    const RowBytes bytes(file, 5, static_cast<int64_t>(text.size()), window);
    JsonScanner json(bytes);
    json.expect('{');
    EXPECT_EQ(json.string(100), before);
    json.expect(':');
    json.expect('[');
    EXPECT_EQ(json.integer(), -12345678901);
    json.expect(',');
    EXPECT_EQ(json.number(), "1.25e-3");
    json.expect(',');
    json.skip_value();
    json.expect(',');
    json.skip_value();
    json.expect(',');
    EXPECT_EQ(json.string(200), "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\n" + before + "\xc3\xa9");
    json.expect(']');
    json.expect(',');
    json.skip_value();
    json.expect(':');
    EXPECT_EQ(json.string(1000), std::string(300, 'y'));
    json.expect('}');
    json.expect_end();
  }
}

TEST(JsonScanner, Integers) {
  const auto integer = [](const std::string& text) {
    const RowBytes bytes{text};
    return JsonScanner(bytes).integer();
  };
  EXPECT_EQ(integer(" 12 "), 12);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"1.0", "1e3", "9223372036854775808", "true", "\"1\"", "", "-", "01"})
    EXPECT_THROW(integer(text), JsonProblem) << text;
}

TEST(JsonScanner, RefusesDeepNesting) {
  EXPECT_TRUE(accepts(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(accepts(std::string(65, '[') + std::string(65, ']')));
  EXPECT_FALSE(accepts(std::string(1000000, '[')));
}

}  // namespace
}  // namespace headroom
