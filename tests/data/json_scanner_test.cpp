#include "data/json_scanner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headroom {
namespace {

// Whether the scanner takes the text as one JSON value.
bool accepts(std::string text) {
  JsonScanner json(text);
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

TEST(JsonScanner, UnescapesInPlace) {
  std::string text = R"({"k\u0065y":"a\n\u00e9\ud83d\ude00\"z"})";
  JsonScanner json(text);
  json.expect('{');
  EXPECT_EQ(json.string(), "key");
  json.expect(':');
  EXPECT_EQ(json.string(), "a\n\xc3\xa9\xf0\x9f\x98\x80\"z");
  json.expect('}');
  json.expect_end();
}

TEST(JsonScanner, Integers) {
  const auto integer = [](std::string text) { return JsonScanner(text).integer(); };
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
