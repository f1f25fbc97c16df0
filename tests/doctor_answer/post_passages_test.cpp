// The passages of a post that look like configurations, and those that are left out.
#include "doctor/answer/post_passages.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headroom::doctor {
namespace {

std::vector<std::string> texts_of(const std::string& post) {
  std::vector<std::string> texts;
  for (const Passage& passage : configuration_passages(post))
    texts.push_back(passage.text.substr(passage.text.find_first_not_of('\n')));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(PostPassages, ABlockOfYaml) {
  const Texts wanted = {"base_model: a/b\ndatasets:\n  - path: c\n\nbatch: 2\n"};
  EXPECT_EQ(texts_of("My config:\n```yaml\nbase_model: a/b\ndatasets:\n  - path: c\n\nbatch: 2\n```\nIt fails.\n"),
            wanted);
  EXPECT_EQ(texts_of("It is\n\n    base_model: a/b\n    datasets:\n      - path: c\n\n    batch: 2\n\nand fails.\n"),
            wanted);
}

TEST(PostPassages, AListOverSeveralLinesBelongsToItsDocument) {
  const std::string document =
      "model: a/b\nfiles: [\n  one.bin,\n  two.bin,\n]\nparts:\n  - {\n    x: 1\n  }\nbatch: 2\n";
  EXPECT_EQ(texts_of("```yaml\n" + document + "```\n"), Texts{document});
  EXPECT_EQ(texts_of("model: a/b\nbatch: 2\nfiles: [\nIt never ends.\n"), Texts{"model: a/b\nbatch: 2\nfiles: [\n"});
}

TEST(PostPassages, LinesKeepTheirNumbers) {
  const std::vector<Passage> passages = configuration_passages("one\ntwo\n```\na: 1\nb: 2\n```\n");
  ASSERT_EQ(passages.size(), 1U);
  EXPECT_EQ(passages[0].line, 4);
  EXPECT_EQ(passages[0].text, "\n\n\na: 1\nb: 2\n");
}

TEST(PostPassages, AnObjectOfJson) {
  EXPECT_EQ(texts_of("ds.json:\n{\n  \"zero_optimization\": {\"stage\": 2} // two\n}\nfails\n"),
            Texts{"{\n  \"zero_optimization\": {\"stage\": 2} // two\n}"});
  EXPECT_EQ(texts_of("[INFO] [config.py:9:print]   json = {\n  \"bf16\": {\"enabled\": true}\n}\n"),
            Texts{"{\n  \"bf16\": {\"enabled\": true}\n}"});
  EXPECT_EQ(texts_of("{\"loss\": 1.5, \"learning_rate\": 1e-5}\n"), Texts{}) << "a line of a log";
  EXPECT_EQ(texts_of("{\n  \"stage\": 2,\n  more of it\n}\n"), Texts{});
}

TEST(PostPassages, CallsOfPython) {
  EXPECT_EQ(texts_of("I call\n\nargs = TrainingArguments(\n    bf16=True,  # it's on\n)\nand then it fails\n"),
            Texts{"args = TrainingArguments(\n    bf16=True,  # it's on\n)\n"});
  EXPECT_EQ(texts_of("name = \"a/b\"\nfor x in y:\n    z(x)\nmodel = A.from_pretrained(name)\n"),
            Texts{"name = \"a/b\"\n\n    z(x)\nmodel = A.from_pretrained(name)\n"});
}

TEST(PostPassages, ASentenceBetweenTwoPiecesOfCode) {
  EXPECT_EQ(texts_of("a = f(1)\nShould I add this?\nb = g(2)\nThen it is\nc = h(3)\n"),
            (Texts{"a = f(1)\n", "c = h(3)\n"}));
}

TEST(PostPassages, ProseIsNoCode) {
  for (const char* prose :
       {"TrainingArguments(bf16=True) did not help at all\n", "I used Trainer(model) and it failed\n",
        "try `model.half()` here\n", "args = the usual ones\n", "Trainer(model, it fails\n"})
    EXPECT_EQ(texts_of(prose), Texts{}) << prose;
}

TEST(PostPassages, WhatOthersWriteIsLeftOut) {
  const std::string yaml = "base: a\nbatch: 2\n";
  EXPECT_EQ(texts_of("It fails.\n\n> base: a\n> batch: 2\n"), Texts{}) << "quoted";
  EXPECT_EQ(texts_of("It fails\nwith this\n\nneat commented 2 days ago\n" + yaml), Texts{});
  EXPECT_EQ(texts_of("It fails\nwith this\n\n## Solution\n" + yaml), Texts{});
  EXPECT_EQ(texts_of("neat commented 2 days ago\n" + yaml), Texts{yaml}) << "the head of the post itself";
  EXPECT_EQ(texts_of("I commented out a line.\nSee\nthis\nfile\n" + yaml), Texts{yaml});
}

TEST(PostPassages, AnotherRunIsLeftOut) {
  const std::string block = "```yaml\nbase: a\nbatch: 2\n```\n";
  for (const char* before : {"This works:\n", "Should I use this instead?\n", "I also tried:\n", "You can use\n"})
    EXPECT_EQ(texts_of(before + block), Texts{}) << before;
  EXPECT_EQ(texts_of(block + "It works fine like this.\n"), Texts{});
  EXPECT_EQ(texts_of("On our workstation\n" + block + "It does not work.\n").size(), 1U);
}

TEST(PostPassages, TheCommentThatHeadsAFileIsNoIntroduction) {
  const std::string document = "model: a/b\nbatch: 2\n",
                    header = "# Trains an adapter.\n#\n# Made for\n# one device: it works best there.\n\n";
  EXPECT_EQ(texts_of("Mine:\n```yaml\n" + header + document + "```\n"), Texts{document});
  EXPECT_EQ(texts_of("```yaml\n# this one works:\n" + document + "```\n"), Texts{});
  EXPECT_EQ(texts_of("A friend recommended\n```yaml\n" + header + document + "```\n"), Texts{});
}

TEST(PostPassages, DiffsAndTracebacksAreLeftOut) {
  EXPECT_EQ(texts_of("```diff\n base: a\n-batch: 4\n+batch: 2\n lr: 1\n rows: 3\n```\n"), Texts{});
  EXPECT_EQ(texts_of("Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n"
                     "    model = A.from_pretrained(\"a/b\")\nRuntimeError: no\n"),
            Texts{});
  EXPECT_EQ(texts_of("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nRuntimeError: no\n\n"
                     "model = A.from_pretrained(\"a/b\")\n"),
            Texts{"model = A.from_pretrained(\"a/b\")\n"});
}

TEST(PostPassages, WhatIsCutIsMarked) {
  const auto cut = [](const char* post) {
    const std::vector<Passage> passages = configuration_passages(post);
    return passages.size() == 1 && passages[0].cut;
  };
  EXPECT_TRUE(cut("base: a\n...\nbatch: 2\n"));
  EXPECT_TRUE(cut("base: a\n# ...\nbatch: 2\n"));
  EXPECT_TRUE(cut("args = TrainingArguments(\n    bf16=True,\n    ...\n)\n"));
  EXPECT_FALSE(cut("base: a\nbatch: 2\n"));
  EXPECT_FALSE(cut("print(\"...\")\n"));
}

}  // namespace
}  // namespace headroom::doctor
