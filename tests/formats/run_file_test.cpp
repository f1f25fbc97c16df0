#include "formats/run_file.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "temporary_directory.h"

namespace headroom {
namespace {

std::vector<RunFileEntry> entries_of(const std::string& text) { return parse_run_file(text, "run.yaml"); }

TEST(RunFile, ScalarsAndListsInOrder) {
  const auto entries = entries_of(
      "# a run\nmodel: /m\nmax_steps: 10\nlearning-rate: 1e-4\n\ndata:\n  - a.txt\n  - 'b c.txt'\nshuffle: "
      "false\nallow: [lossy, data-order]\nempty: ''\n");
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0].key, "model");
  EXPECT_EQ(entries[0].values, std::vector<std::string>{"/m"});
  EXPECT_EQ(entries[1].key, "max-steps");
  EXPECT_EQ(entries[1].line, 3);
  EXPECT_FALSE(entries[1].is_list);
  EXPECT_EQ(entries[2].values[0], "1e-4");
  EXPECT_EQ(entries[3].key, "data");
  EXPECT_TRUE(entries[3].is_list);
  EXPECT_EQ(entries[3].values, (std::vector<std::string>{"a.txt", "b c.txt"}));
  EXPECT_EQ(entries[3].value_lines, (std::vector<int>{7, 8}));
  EXPECT_EQ(entries[4].values[0], "false");
  EXPECT_EQ(entries[4].line, 9);
  EXPECT_EQ(entries[5].values, (std::vector<std::string>{"lossy", "data-order"}));
  EXPECT_EQ(entries[6].values, std::vector<std::string>{""});
}

TEST(RunFile, EmptyFilesAndListsHaveNoValues) {
  EXPECT_TRUE(entries_of("").empty());
  EXPECT_TRUE(entries_of("# only a comment\n").empty());
  EXPECT_TRUE(entries_of("---\n").empty());
  const auto entries = entries_of("data: []\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].values.empty());
}

TEST(RunFile, RefusesWithFileAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a: 1\nb:\n  c: 2\n", "run.yaml:3: 'b' has a nested map"},
      {"a: {b: 1}", "run.yaml:1: 'a' has a nested map"},
      {"a: [[1]]", "run.yaml:1: 'a' has a list inside a list"},
      {"a: [{b: 1}]", "run.yaml:1: 'a' has a nested map"},
      {"a: 1\nb: 2\na: 3\n", "run.yaml:3: 'a' is given twice (first in line 1)"},
      {"max-steps: 1\nmax_steps: 2\n", "run.yaml:2: 'max_steps' is given twice (first in line 1)"},
      {"a: 1\nb:\n", "run.yaml:2: 'b' has no value"},
      {"a: ~", "run.yaml:1: 'a' has no value"},
      {"a: [1, null]", "run.yaml:1: 'a' has no value"},
      {"just text", "run.yaml:1: 'just text' where `option: value` was expected"},
      {"- a\n- b\n", "run.yaml:1: a list where"},
      {"a: &x 1\nb: *x\n", "run.yaml:1: an anchor"},
      {"[a]: 1", "run.yaml:1: a list where"},
      {"{a: 1}: 2", "run.yaml:1: a map as a key"},
      {"a: 1\n---\nb: 2\n", "several documents"},
      {"a: \"unclosed", "run.yaml:1: malformed YAML"},
      {"a: 1\n\tb: 2\n", "malformed YAML"},
      {"'': 1", "run.yaml:1: an empty key"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::format, message, [&text = text] { entries_of(text); });
  }
  expect_error(ErrorKind::format, "a run file has at most 1.00 MiB", [] { entries_of(std::string(2 << 20, '#')); });
  expect_error(ErrorKind::format, "run.yaml:1", [] { entries_of("a: " + std::string(100000, '[')); });
}

TEST(RunFile, ReadsFiles) {
  TemporaryDirectory directory;
  EXPECT_EQ(read_run_file(directory.write("r.yaml", "seed: 7")).at(0).values.at(0), "7");
  expect_error(ErrorKind::usage, "none.yaml", [&] { read_run_file(directory / "none.yaml"); });
  expect_error(ErrorKind::usage, "directory", [&] { read_run_file(directory.path()); });
}

}  // namespace
}  // namespace headroom
