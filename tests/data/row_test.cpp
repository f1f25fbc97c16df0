#include "data/row.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "../formats/expect_error.h"

namespace headroom {
namespace {

const RowPlace kPlace{"d.jsonl", 7, 1000};

// A row with the texts of its parts; `bytes` keeps them alive.
struct Parsed {
  explicit Parsed(std::string text) : text(std::move(text)), bytes(this->text), row(parse_row(bytes, kPlace)) {}
  std::string part(const RowPart& part) const {
    RowText reader(row, part);
    std::string result;
    std::array<char, 5> piece;
    while (const size_t count = reader.read(piece)) result.append(piece.data(), count);
    return result;
  }
  std::string text;
  RowBytes bytes;
  Row row;
};

TEST(Row, KindsAndParts) {
  const Parsed text(R"({"id":[1,{"x":null}],"text":"a\tb"})");
  EXPECT_EQ(text.row.kind, RowKind::text);
  EXPECT_EQ(text.part(text.row.text), "a\tb");

  const Parsed prompt(R"({"completion":"c","prompt":"p"})");
  EXPECT_EQ(prompt.row.kind, RowKind::prompt);
  EXPECT_EQ(prompt.part(prompt.row.prompt), "p");
  EXPECT_EQ(prompt.part(prompt.row.completion), "c");

  const Parsed instruction(R"({"instruction":"i","input":null,"output":"o","text":"all of it"})");
  EXPECT_EQ(instruction.row.kind, RowKind::instruction);
  EXPECT_EQ(instruction.part(instruction.row.instruction), "i");
  EXPECT_TRUE(instruction.row.input.empty());
  EXPECT_EQ(instruction.part(instruction.row.output), "o");

  const Parsed ids(R"({"labels": [-100, 2], "input_ids":[1,2] })");
  EXPECT_EQ(ids.row.kind, RowKind::ids);
  EXPECT_EQ(ids.part(ids.row.ids), "[1,2]");
  EXPECT_EQ(ids.part(ids.row.labels), "[-100, 2]");
  EXPECT_EQ(ids.row.labels.at, 11);

  const Parsed labelled(R"({"text":"t","label":-3})");
  EXPECT_EQ(labelled.row.kind, RowKind::labelled);
  EXPECT_EQ(labelled.part(labelled.row.text), "t");
  EXPECT_EQ(labelled.row.label, "-3");
  EXPECT_FALSE(labelled.row.label_named);

  const Parsed named(R"({"label":"go\u006fd","text":"t"})");
  EXPECT_EQ(named.row.label, "good");
  EXPECT_TRUE(named.row.label_named);

  EXPECT_EQ(Parsed(R"({"text":"t","label":null})").row.kind, RowKind::text);

  for (const std::string key : {"label", "labels"}) {
    const Parsed labelled_ids(R"({"input_ids":[5,6],")" + key + R"(":4})");
    EXPECT_EQ(labelled_ids.row.kind, RowKind::labelled_ids);
    EXPECT_EQ(labelled_ids.part(labelled_ids.row.ids), "[5,6]");
    EXPECT_EQ(labelled_ids.row.label, "4");
  }

  const Parsed messages(R"({"text":"t","messages": [{"role":"a\"b"}],"tools":null})");
  EXPECT_EQ(messages.row.kind, RowKind::messages);
  EXPECT_EQ(messages.part(messages.row.messages), R"([{"role":"a\"b"}])");
  EXPECT_EQ(messages.row.messages.at, 24);
  EXPECT_TRUE(messages.row.tools.empty());
}

TEST(Row, RefusalsNameFileLineAndByte) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello", "d.jsonl:7: not JSON: 'h' where a value was expected at byte 1000 of the file"},
      {"{\"text\":\"a\"", "d.jsonl:7: not JSON: ends where ',' was expected at byte 1011"},
      {"{\"text\":\"a\"} {}", "d.jsonl:7: not JSON: '{' where the end of the row was expected at byte 1013"},
      {"{'text':'a'}", "d.jsonl:7: not JSON: ''' where '\"' was expected at byte 1001"},
      {"{\"text\":\"a\xff\"}", "d.jsonl:7: not UTF-8 (byte 0xff) at byte 1010 of the file"},
      {"\"text\"", "d.jsonl:7: the row is not a JSON object"},
      {"[1]", "d.jsonl:7: the row is not a JSON object"},
      {"{}", "d.jsonl:7: the row has none of the keys"},
      {"{\"content\":\"a\"}", "the row has none of the keys"},
      {"{\"text\":5}", "d.jsonl:7: 'text' is 5, not a string"},
      {"{\"text\":null}", "'text' is null, not a string"},
      {"{\"text\":\"a\",\"text\":\"b\"}", "the key 'text' appears twice"},
      {"{\"prompt\":\"a\"}", "the key 'completion' is missing"},
      {"{\"completion\":\"a\"}", "the key 'prompt' is missing"},
      {"{\"instruction\":\"a\"}", "the key 'output' is missing"},
      {"{\"instruction\":\"a\",\"output\":[]}", "'output' is [], not a string"},
      {"{\"instruction\":\"a\",\"input\":{},\"output\":\"b\"}", "'input' is {}, not a string"},
      {"{\"input_ids\":[1]}", "the key 'labels' is missing"},
      {"{\"labels\":[1]}", "the key 'input_ids' is missing"},
      {"{\"input_ids\":\"1\",\"labels\":[1]}", "'input_ids' is 1, not a list of integers"},
      {"{\"messages\":{}}", "d.jsonl:7: 'messages' is {}, not a list"},
      {"{\"messages\":[],\"tools\":5}", "d.jsonl:7: 'tools' is 5, not a list"},
      {"{\"text\":\"a\",\"label\":true}", "d.jsonl:7: 'label' is true, neither an integer nor a class's name"},
      {"{\"text\":\"a\",\"label\":1.5}", "'label' is 1.5, neither"},
      {"{\"text\":\"a\",\"label\":[1]}", "'label' is [1], neither"},
      {"{\"label\":1}", "the row has none of the keys"},
      {"{\"input_ids\":[1],\"labels\":{}}", "'labels' is {}, neither"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const RowBytes bytes{text};
    expect_error(ErrorKind::format, message, [&] { parse_row(bytes, kPlace); });
  }
}

}  // namespace
}  // namespace headroom
