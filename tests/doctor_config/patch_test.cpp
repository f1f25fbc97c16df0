#include "doctor/config/patch.h"

#include <filesystem>

#include "../data_files/data_files.h"
#include "expect_config.h"
#include "formats/document.h"
#include "formats/file.h"

namespace headroom::doctor {
namespace {

std::string patched(SourceKind kind, const std::string& text, const std::vector<Edit>& edits) {
  return patch_config("f", kind, text, edits).text;
}

TEST(Patch, YamlValuesKeepCommentsAndQuotes) {
  const std::string text = "# head\na: 1   # one\nb:\n    c: 'x'  # c\n    d:\ne: [1, 2]\n";
  EXPECT_EQ(patched(SourceKind::yaml, text, {{"a", "2"}, {"b.c", "y"}, {"b.d", "true"}, {"e", "[3]"}}),
            "# head\na: 2   # one\nb:\n    c: 'y'  # c\n    d: true\ne: [3]\n");
}

TEST(Patch, YamlKeysAreAddedInTheirSection) {
  EXPECT_EQ(patched(SourceKind::yaml, "t:\n  a: 1\n  l:\n  - x\n\n# next\nu: 2\n", {{"t.b", "q: r"}, {"v.w.x", "5"}}),
            "t:\n  a: 1\n  l:\n  - x\n  b: \"q: r\"\n\n# next\nu: 2\nv:\n  w:\n    x: 5\n");
  EXPECT_EQ(patched(SourceKind::yaml, "a: {b: 1}\n", {{"a.c", "2"}}), "a: {b: 1, c: 2}\n");
  EXPECT_EQ(patched(SourceKind::yaml, "{\n  \"a\": 1, # c\n  \"b\": [2],\n}\n", {{"z.stage", "3"}, {"z.on", "true"}}),
            "{\n  \"a\": 1, # c\n  \"b\": [2],\n  \"z\": {\"stage\": 3, \"on\": true},\n}\n");
  EXPECT_EQ(patched(SourceKind::yaml, "a: 1", {{"b", "2"}}), "a: 1\nb: 2");
  EXPECT_EQ(patched(SourceKind::yaml, "s:\nt: 1\n", {{"s.x", "1"}}), "s:\n  x: 1\nt: 1\n");
  EXPECT_EQ(patched(SourceKind::yaml, "a: 1\nb: 2\n", {{"a", "", 0, true}}), "b: 2\n");
}

TEST(Patch, YamlWrittenNullsAreReplaced) {
  EXPECT_EQ(patched(SourceKind::yaml, "a: null  # one\nb: ~\nc: {d: null, e: 1}\nf:\nnull: 3\n",
                    {{"a", "1024"}, {"b", "x"}, {"c.d", "2"}, {"f", "4"}}),
            "a: 1024  # one\nb: x\nc: {d: 2, e: 1}\nf: 4\nnull: 3\n");
  EXPECT_EQ(patched(SourceKind::yaml, "s: null # c\nt: 1\n", {{"s.x", "1"}}), "s: # c\n  x: 1\nt: 1\n");
  EXPECT_EQ(patched(SourceKind::yaml, "a: null\nb: 2\n", {{"a", "", 0, true}}), "b: 2\n");
}

TEST(Patch, YamlRefusesWhatItCannotChangeAlone) {
  expect_error(ErrorKind::usage, "spans lines", [] { patched(SourceKind::yaml, "a: |\n  x\n  y\n", {{"a", "1"}}); });
  expect_error(ErrorKind::usage, "by an alias", [] { patched(SourceKind::yaml, "a: &x 1\nb: *x\n", {{"b", "1"}}); });
  expect_error(ErrorKind::usage, "the value before it", [] {
    patched(SourceKind::yaml, "a: &x 1\nb: {c: *x}\n", {{"b.d", "1"}});
  });
  expect_error(ErrorKind::usage, "where its section belongs", [] {
    patched(SourceKind::yaml, "a: 1\n", {{"a.b", "1"}});
  });
}

TEST(Patch, Json) {
  const std::string text = "{\n  \"a\": 1,\n  \"z\": {\n    \"stage\": 2\n  }\n}\n";
  EXPECT_EQ(
      patched(SourceKind::json, text, {{"a", "x"}, {"z.stage", "3"}, {"z.offload_optimizer.device", "cpu"}}),
      "{\n  \"a\": \"x\",\n  \"z\": {\n    \"stage\": 3,\n    \"offload_optimizer\": {\"device\": \"cpu\"}\n  }\n}\n");
  EXPECT_EQ(patched(SourceKind::json, "{}", {{"a", "true"}}), "{\"a\": true}");
}

TEST(Patch, PythonArguments) {
  const std::string text =
      "args = TrainingArguments(\n    output_dir='o',  # out\n    bf16=B,\n)\nx = SFTConfig(a=1)\n";
  EXPECT_EQ(patched(SourceKind::python, text,
                    {{"TrainingArguments.bf16", "true"},
                     {"TrainingArguments.optim", "adamw_8bit"},
                     {"SFTConfig.max_length", "512"}}),
            "args = TrainingArguments(\n    output_dir='o',  # out\n    bf16=True,\n    optim=\"adamw_8bit\",\n)\n"
            "x = SFTConfig(a=1, max_length=512)\n");
  EXPECT_EQ(patched(SourceKind::python, "f(a='x')\nmicro = 4  # m\n", {{"f.a", "y"}, {"micro", "1"}}),
            "f(a='y')\nmicro = 1  # m\n");
  expect_error(ErrorKind::usage, "no such call", [] { patched(SourceKind::python, "f()\n", {{"g.a", "1"}}); });
}

TEST(Patch, CommandLines) {
  const std::string text = "#SBATCH --mem=10G\npython t.py \\\n    --bs 4 \\\n    --lr=1e-4 \\\n    --flag\n";
  EXPECT_EQ(patched(SourceKind::command, text, {{"--bs", "2"}, {"--lr", "2e-4"}, {"--optim", "sgd"}, {"--mem", "20G"}}),
            "#SBATCH --mem=20G\npython t.py \\\n    --bs 2 \\\n    --lr=2e-4 \\\n    --flag \\\n    --optim sgd\n");
  EXPECT_EQ(patched(SourceKind::command, text, {{"--flag", "false"}}),
            "#SBATCH --mem=10G\npython t.py \\\n    --bs 4 \\\n    --lr=1e-4\n");
  EXPECT_EQ(patched(SourceKind::command, "vllm serve m", {{"--enforce-eager", ""}, {"--max-model-len", "1024"}}),
            "vllm serve m --enforce-eager --max-model-len 1024");
  EXPECT_EQ(patched(SourceKind::command, "tune run x batch_size=2", {{"batch_size", "1"}, {"dtype", "bf16"}}),
            "tune run x batch_size=1 dtype=bf16");
  expect_error(ErrorKind::usage, "from a variable", [] {
    patched(SourceKind::command, "A='--bs 4'\npython t.py $A\n", {{"--bs", "1"}});
  });
}

TEST(Patch, UnifiedDiff) {
  EXPECT_EQ(unified_diff("f", "a\n", "a\n"), "");
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n"),
            "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
  EXPECT_EQ(unified_diff("f", "a", "a\nb\n"),
            "--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n");
}

// Every understood scalar of every published file can be changed and changed back.
TEST(Patch, CorpusRoundTrip) {
  const std::filesystem::path corpus = test::data_file("configs");
  int64_t edits = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    const std::string suffix = entry.path().extension().string();
    if (!entry.is_regular_file() || suffix == ".jsonl") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string text = read_text_file(entry.path());
    const SourceKind kind = suffix == ".json" ? SourceKind::json : SourceKind::yaml;
    const DocumentNode root =
        kind == SourceKind::json ? parse_json_document(text, "f") : parse_yaml_document(text, "f");
    int64_t here = 0;
    for (const DocumentLeaf& leaf : document_leaves(root)) {
      if (leaf.value->kind != DocumentNode::Kind::scalar || leaf.path.find("[]") != std::string::npos || here == 12)
        continue;
      const Edit edit{leaf.path, "12345", leaf.line};
      const Patch there = patch_config("f", kind, text, {edit});
      const auto begin = static_cast<size_t>(leaf.value->begin), end = static_cast<size_t>(leaf.value->end);
      const std::string written = text.substr(begin, end - begin);
      const size_t length = there.text.size() - text.size() + written.size();
      std::string back = there.text;
      back.replace(begin, length, written);
      EXPECT_EQ(back, text) << leaf.path;
      const DocumentNode again =
          kind == SourceKind::json ? parse_json_document(there.text, "f") : parse_yaml_document(there.text, "f");
      EXPECT_EQ(document_leaves(again).size(), document_leaves(root).size()) << leaf.path;
      ++edits;
      ++here;
    }
    const Patch added = patch_config("f", kind, text, {{"a_new_section.a_new_key", "1"}});
    const DocumentNode with =
        kind == SourceKind::json ? parse_json_document(added.text, "f") : parse_yaml_document(added.text, "f");
    ASSERT_NE(with.find("a_new_section"), nullptr);
    EXPECT_EQ(with.find("a_new_section")->find("a_new_key")->text, "1");
  }
  EXPECT_GT(edits, 1500);
}

}  // namespace
}  // namespace headroom::doctor
