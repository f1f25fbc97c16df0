#include "formats/document.h"

#include <fmt/format.h>

#include "../sanitized.h"
#include "base/process_memory.h"
#include "expect_config.h"
#include "formats/document_command.h"

namespace headroom {
namespace {

using doctor::expect_error;
using Kind = DocumentNode::Kind;

TEST(Document, YamlKeepsLinesAndBytes) {
  const std::string text = "a: 1 # one\nb:\n  c: 'x y'\n  d: [p, \"q\"]\ne:\n";
  const DocumentNode root = parse_yaml_document(text, "f");
  const auto leaves = document_leaves(root);
  ASSERT_EQ(leaves.size(), 4u);
  EXPECT_EQ(leaves[0].path, "a");
  EXPECT_EQ(text.substr(leaves[0].value->begin, leaves[0].value->end - leaves[0].value->begin), "1");
  EXPECT_EQ(leaves[1].path, "b.c");
  EXPECT_EQ(leaves[1].line, 3);
  EXPECT_TRUE(leaves[1].value->quoted);
  EXPECT_EQ(text.substr(leaves[1].value->begin, leaves[1].value->end - leaves[1].value->begin), "'x y'");
  EXPECT_EQ(leaves[2].value->items.size(), 2u);
  EXPECT_EQ(text.substr(leaves[2].value->begin, leaves[2].value->end - leaves[2].value->begin), "[p, \"q\"]");
  EXPECT_EQ(leaves[3].value->kind, Kind::null);
}

TEST(Document, YamlMergesAndAliases) {
  const DocumentNode root = parse_yaml_document("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n", "f");
  const DocumentNode* use = root.find("use");
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->find("x")->text, "1");
  EXPECT_EQ(use->find("y")->text, "3");
  EXPECT_EQ(use->find("x")->end, 0);  // the value is elsewhere
}

TEST(Document, YamlRefusesWithFileAndLine) {
  expect_error(ErrorKind::format, "f:2: malformed YAML", [] { parse_yaml_document("a: 1\nb: [1\n", "f"); });
  expect_error(ErrorKind::format, "several documents", [] { parse_yaml_document("a: 1\n---\nb: 1\n", "f"); });
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += before + ",";
    bomb += "]\n";
  }
  expect_error(ErrorKind::format, "more than 200000 values", [&] { parse_yaml_document(bomb, "f"); });
  expect_error(ErrorKind::format, "", [] { parse_yaml_document(std::string(5000, '['), "f"); });
}

TEST(Document, JsonKeepsLinesAndTakesHjsonComments) {
  const std::string text = "{\n  \"a\": 5e8, // buckets\n  \"b\": {\"c\": \"x\\ny\\u00e9\"},\n}\n";
  const DocumentNode root = parse_json_document(text, "f");
  const auto leaves = document_leaves(root);
  ASSERT_EQ(leaves.size(), 2u);
  EXPECT_EQ(leaves[0].value->text, "5e8");
  EXPECT_EQ(leaves[1].path, "b.c");
  EXPECT_EQ(leaves[1].line, 3);
  EXPECT_EQ(leaves[1].value->text, "x\ny\xC3\xA9");
}

TEST(Document, JsonRefusesWithFileAndLine) {
  expect_error(ErrorKind::format, "f:2: malformed JSON", [] { parse_json_document("{\"a\": 1\n\"b\": 2}", "f"); });
  expect_error(ErrorKind::format, "f:1: malformed JSON: 'ture' is not a value",
               [] { parse_json_document("{\"a\": ture}", "f"); });
  expect_error(ErrorKind::format, "nested deeper", [] { parse_json_document(std::string(100, '['), "f"); });
  expect_error(ErrorKind::format, "without its closing quote", [] { parse_json_document("{\"a", "f"); });
  expect_error(ErrorKind::format, "more text after", [] { parse_json_document("{} {}", "f"); });
}

// yaml-cpp would decode them, and positions would refer to another text.
TEST(Document, OtherEncodingsAreRefused) {
  using namespace std::string_literals;
  for (const std::string& text : {"\xFF\xFE"s + "a\0:\0"s, "\xFE\xFF"s + "\0a\0:"s, "a\0:\0 \0b\0"s, "\0\0\0a\0\0\0:"s,
                                  "\0\xFBh$xLL:\n${\n:\n:\n\0:{\n:\n:\n\0:"s})
    for (const auto& parse : {parse_yaml_document, parse_json_document})
      expect_error(ErrorKind::format, "run.yaml begins as UTF-16 or UTF-32 do", [&] { parse(text, "run.yaml"); });
  EXPECT_NO_THROW(
      parse_yaml_document("\xEF\xBB\xBF"
                          "a: b",
                          "run.yaml"));
}

TEST(Document, ShellWordsVariablesAndArrays) {
  const std::string text =
      "#!/bin/bash\nBS=4\nexport LR=1e-4\nARGS=(--bf16 \\\n  --seed 1)\nEXTRA=\"--a 1 --b 2\"\n"
      "X=1 python train.py --batch $BS \"--lr=${LR}\" ${ARGS[@]} $EXTRA --out \"$HOME/x\" > log 2>&1 && echo 'done "
      "it'\n";
  const auto commands = parse_shell_commands(text, "f");
  ASSERT_EQ(commands.size(), 3u);  // export, python, echo
  std::vector<std::string> words;
  for (const CommandWord& word : commands[1].words) words.push_back(word.text);
  EXPECT_THAT(words, testing::ElementsAre("python", "train.py", "--batch", "4", "--lr=1e-4", "--bf16", "--seed", "1",
                                          "--a", "1", "--b", "2", "--out", "$HOME/x"));
  EXPECT_TRUE(commands[1].words.back().unset_variable);
  EXPECT_EQ(commands[1].environment.at("X"), "1");
  EXPECT_EQ(commands[1].environment.at("LR"), "1e-4");
  EXPECT_EQ(commands[1].words[5].line, 4);  // in the array
  EXPECT_EQ(commands[1].words[8].end, 0);   // from a variable
  EXPECT_EQ(commands[2].words[1].text, "done it");
  expect_error(ErrorKind::format, "f:2: an unclosed quote", [] { parse_shell_commands("a\nb 'c", "f"); });
}

TEST(Document, ShellSkipsHereDocumentsAndComments) {
  const auto commands = parse_shell_commands("cat <<EOF > x\npython a.py\nEOF\n# python b.py\nvllm serve m\n", "f");
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[1].words[0].text, "vllm");
  EXPECT_EQ(commands[1].words[0].line, 5);
}

TEST(Document, ShellVariablesThatDoubleStaySmall) {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 200; ++i) text += "A=$A$A\n";
  text += "echo";
  for (int i = 0; i < 20000; ++i) text += " $A$A$A$A";
  const auto commands = parse_shell_commands(text, "f");
  size_t total = 0;
  for (const ShellCommand& command : commands)
    for (const CommandWord& word : command.words) total += word.text.size();
  EXPECT_LT(total, size_t{32} << 20);
}

// Sixty nested anchors: each would keep a copy of everything inside.
TEST(Document, AnchorsCountAsTheValuesThatTheyRepeat) {
  constexpr int kAnchors = 60, kValues = 120000;
  std::string text = "key: ";
  for (int i = 0; i < kAnchors; ++i) text += fmt::format("&a{} [\n", i);
  for (int i = 0; i < kValues; ++i) text += "0, ";
  text += std::string(kAnchors, ']') + "\n";
  ASSERT_LT(text.size(), size_t{400} << 10);
  const int64_t before = peak_resident_bytes();
  expect_error(ErrorKind::format, "f:60: more than 200000 values with those that anchors and aliases repeat",
               [&] { parse_yaml_document(text, "f"); });
  EXPECT_TRUE(HEADROOM_SANITIZED || peak_resident_bytes() - before < int64_t{128} << 20);
}

TEST(Document, AliasesCountAsTheTextThatTheyRepeat) {
  std::string text = "a: &a " + std::string(100000, 'x') + "\nb:\n";
  for (int i = 0; i < 1000; ++i) text += "- *a\n";
  // Line 2 is "b:"; the anchor's copy and 82 aliases are 8.3 million bytes, and one more alias exceeds 8 MiB.
  expect_error(ErrorKind::format, "f:85: anchors and aliases repeat more than 8",
               [&] { parse_yaml_document(text, "f"); });
  text.resize(text.find("- *a") + 82 * 5);
  EXPECT_EQ(parse_yaml_document(text, "f").find("b")->items.size(), 82u);
}

}  // namespace
}  // namespace headroom
