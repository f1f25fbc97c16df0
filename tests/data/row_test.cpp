#include "data/row.h"

#include <gtest/gtest.h>

#include "../formats/expect_error.h"

namespace headroom {
namespace {

const RowPlace kPlace{"d.jsonl", 7, 1000};

TEST(Row, KindsAndParts) {
  std::string text = R"({"id":[1,{"x":null}],"text":"a\tb"})";
  Row row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::text);
  EXPECT_EQ(row.text, "a\tb");

  text = R"({"completion":"c","prompt":"p"})";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::prompt);
  EXPECT_EQ(row.prompt, "p");
  EXPECT_EQ(row.completion, "c");

  text = R"({"instruction":"i","input":null,"output":"o","text":"all of it"})";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::instruction);
  EXPECT_EQ(row.instruction, "i");
  EXPECT_EQ(row.input, "");
  EXPECT_EQ(row.output, "o");

  text = R"({"labels": [-100, 2], "input_ids":[1,2] })";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::ids);
  EXPECT_EQ(std::string(row.ids.begin(), row.ids.end()), "[1,2]");
  EXPECT_EQ(std::string(row.labels.begin(), row.labels.end()), "[-100, 2]");
  EXPECT_EQ(row.labels_at, 11);

  text = R"({"text":"t","label":-3})";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::labelled);
  EXPECT_EQ(row.text, "t");
  EXPECT_EQ(row.label, "-3");
  EXPECT_FALSE(row.label_named);

  text = R"({"label":"go\u006fd","text":"t"})";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.label, "good");
  EXPECT_TRUE(row.label_named);

  text = R"({"text":"t","label":null})";
  EXPECT_EQ(parse_row(text, kPlace).kind, RowKind::text);

  for (const std::string key : {"label", "labels"}) {
    text = R"({"input_ids":[5,6],")" + key + R"(":4})";
    row = parse_row(text, kPlace);
    EXPECT_EQ(row.kind, RowKind::labelled_ids);
    EXPECT_EQ(std::string(row.ids.begin(), row.ids.end()), "[5,6]");
    EXPECT_EQ(row.label, "4");
  }

  text = R"({"text":"t","messages": [{"role":"a\"b"}],"tools":null})";
  row = parse_row(text, kPlace);
  EXPECT_EQ(row.kind, RowKind::messages);
  EXPECT_EQ(std::string(row.messages.begin(), row.messages.end()), R"([{"role":"a\"b"}])");
  EXPECT_EQ(row.messages_at, 24);
  EXPECT_TRUE(row.tools.empty());
}

TEST(Row, RefusalsNameFileLineAndByte) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello", "d.jsonl:7: no JSON: 'h' where a value was expected at byte 1000 of the file"},
      {"{\"text\":\"a\"", "d.jsonl:7: no JSON: ends where ',' was expected at byte 1011"},
      {"{\"text\":\"a\"} {}", "d.jsonl:7: no JSON: '{' where the end of the row was expected at byte 1013"},
      {"{'text':'a'}", "d.jsonl:7: no JSON: ''' where '\"' was expected at byte 1001"},
      {"{\"text\":\"a\xff\"}", "d.jsonl:7: not UTF-8 (byte 0xff) at byte 1010 of the file"},
      {"\"text\"", "d.jsonl:7: the row is no JSON object"},
      {"[1]", "d.jsonl:7: the row is no JSON object"},
      {"{}", "d.jsonl:7: the row has none of the keys"},
      {"{\"content\":\"a\"}", "the row has none of the keys"},
      {"{\"text\":5}", "d.jsonl:7: 'text' is 5, not a text"},
      {"{\"text\":null}", "'text' is null, not a text"},
      {"{\"text\":\"a\",\"text\":\"b\"}", "the key 'text' is there twice"},
      {"{\"prompt\":\"a\"}", "the key 'completion' is missing"},
      {"{\"completion\":\"a\"}", "the key 'prompt' is missing"},
      {"{\"instruction\":\"a\"}", "the key 'output' is missing"},
      {"{\"instruction\":\"a\",\"output\":[]}", "'output' is [], not a text"},
      {"{\"instruction\":\"a\",\"input\":{},\"output\":\"b\"}", "'input' is {}, not a text"},
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
    std::string buffer = text;
    expect_error(ErrorKind::format, message, [&] { parse_row(buffer, kPlace); });
  }
}

}  // namespace
}  // namespace headroom
