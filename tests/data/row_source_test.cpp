#include "data/row_source.h"

#include <gtest/gtest.h>

#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"

namespace headroom {
namespace {

struct Cut {
  std::string text;
  int64_t line;
  int64_t offset;
  bool operator==(const Cut&) const = default;
};

std::vector<Cut> cut(const std::filesystem::path& path, int64_t limit = 1 << 20) {
  RowSource source(path, limit);
  std::vector<Cut> rows;
  RowBytes row;
  RowPlace place;
  while (source.next(row, place)) {
    std::string text;
    while (static_cast<int64_t>(text.size()) < row.size()) text += row.from(static_cast<int64_t>(text.size()));
    rows.push_back({text, place.line, place.offset});
  }
  EXPECT_FALSE(source.next(row, place));
  return rows;
}

TEST(RowSource, LinesWithBlanksCarriageReturnsAndNoEnd) {
  TemporaryDirectory directory;
  EXPECT_EQ(cut(directory.write("a.jsonl", "{\"a\":1}\r\n\n  {\"b\":2}\n{\"c\":3}")),
            (std::vector<Cut>{{"{\"a\":1}\r", 1, 0}, {"{\"b\":2}", 3, 12}, {"{\"c\":3}", 4, 20}}));
  EXPECT_TRUE(cut(directory.write("a.jsonl", "")).empty());
  EXPECT_TRUE(cut(directory.write("a.jsonl", " \n\n\t")).empty());
  EXPECT_EQ(cut(directory.write("a.jsonl", "\xef\xbb\xbf{}\n")), (std::vector<Cut>{{"{}", 1, 3}}));
}

TEST(RowSource, AListOfObjects) {
  TemporaryDirectory directory;
  EXPECT_EQ(cut(directory.write("a.json", "\n[ {\"a\":\"]},{\\\"\"} ,\n{\"b\":[{}]}\n]\n")),
            (std::vector<Cut>{{"{\"a\":\"]},{\\\"\"}", 2, 3}, {"{\"b\":[{}]}", 3, 20}}));
  EXPECT_TRUE(cut(directory.write("a.json", "[]")).empty());
}

TEST(RowSource, RowsLongerThanTheReadsAreWhole) {
  TemporaryDirectory directory;
  for (const bool list : {false, true}) {
    std::string content = list ? "[" : "";
    std::vector<std::string> expected;
    for (const size_t length : {10, 70000, 3, 65536, 200000, 131072, 1, 131050, 700000, 196600, 2}) {
      expected.push_back("{\"t\":\"" + std::string(length, static_cast<char>('a' + expected.size())) + "\"}");
      content += (list && expected.size() > 1 ? "," : "") + expected.back() + "\n";
    }
    const auto rows = cut(directory.write("a.json", content + (list ? "]" : "")));
    ASSERT_EQ(rows.size(), expected.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(rows[i].text == expected[i]) << i;
      EXPECT_EQ(rows[i].line, static_cast<int64_t>(i + 1));
      EXPECT_EQ(static_cast<size_t>(rows[i].offset), content.find(expected[i]));
    }
  }
}

TEST(RowSource, RowsAboveTheLimitAreRefused) {
  TemporaryDirectory directory;
  const std::string row = "{\"t\":\"" + std::string(92, 'x') + "\"}";
  ASSERT_EQ(row.size(), 100u);
  for (const auto& [before, after] : {std::pair("", "\n"), std::pair("[", "]")}) {
    const auto path = directory.write("a.json", before + row + after);
    EXPECT_EQ(cut(path, 100).size(), 1u);
    expect_error(ErrorKind::format, "a.json:1: the row has more than 99 bytes", [&path = path] { cut(path, 99); });
  }
  const auto endless = directory.write("b.json", std::string(1 << 20, 'x'));
  expect_error(ErrorKind::format, "b.json:1: the row has more than", [&] { cut(endless, 100000); });
}

TEST(RowSource, WhatStandsBetweenTheRowsOfAList) {
  TemporaryDirectory directory;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[{}\n{}]", ":2: not JSON: ',' or ']' was expected"},
      {"[{},]", ":1: the list holds something other"},
      {"[1]", ":1: the list holds something other"},
      {"[{}", ":1: not JSON: ',' or ']'"},
      {"[", ":1: not JSON: the list does not end"},
      {"[{}] x", ":1: not JSON: text after"},
      {"[{\"a\":", ":1: not JSON: the row does not end"},
      {"[{},", ":1: not JSON: the list does not end"},
      {"[{\"a\":\"}]", "the row does not end"},
  };
  for (const auto& [content, message] : cases) {
    SCOPED_TRACE(content);
    const auto path = directory.write("a.json", content);
    expect_error(ErrorKind::format, message, [&] { cut(path); });
  }
  expect_error(ErrorKind::usage, "none.json", [&] { cut(directory / "none.json"); });
}

}  // namespace
}  // namespace headroom
