#include "grammar/ebnf.h"

#include <gmock/gmock.h>

#include "text_of.h"

namespace headroom {
namespace {

using testing::HasSubstr;

TEST(Ebnf, RulesSequencesAndAlternatives) {
  const Grammar grammar = ebnf(R"(# a comment
root ::= greeting ", " name   # another
       | "bye"
greeting ::= "hello" | "good " (
    "day" | "night" )
name ::= [A-Z] [a-z]*
)");
  expect_texts(grammar, {"hello, Bob", "good night, A", "bye"}, {"hello, bob", "hello", "good , Bob", ""});
}

TEST(Ebnf, RepetitionsClassesAndEscapes) {
  expect_texts(ebnf(R"(root ::= "a"+ [^b-d\n]? ("x" "y"){2,3} .)"), {"axyxy!", "aazxyxyxy漢"},
               {"abxyxy!", "axy!", "axyxy"});
  expect_texts(ebnf(R"(root ::= "\"\\\t\x41\u00e9\U0001F600" [\]\-])"), {"\"\\\tAé😀]", "\"\\\tAé😀-"}, {"\"\\\tAé😀"});
  expect_texts(ebnf(R"(root ::= "")"), {""}, {"a"});
  expect_texts(ebnf("root ::= a-1{0,}\na-1 ::= \"x\""), {"", "xxx"}, {"y"});
}

TEST(Ebnf, RulesMayCallThemselvesBehindWhatTheyRead) {
  const Grammar nested = ebnf("root ::= \"(\" root \")\" | \"x\" tail\ntail ::= \"\" | \"y\" tail");
  expect_texts(nested, {"x", "((xyy))", std::string(200, '(') + "x" + std::string(200, ')')}, {"(x", "()", "x)"});
  EXPECT_TRUE(has(nested, "x" + std::string(100000, 'y'))) << "a call at the end takes no stack";
  EXPECT_EQ(state_of(nested, std::string(255, '(')), TextState::begins);
  EXPECT_EQ(state_of(nested, std::string(300, '(')), TextState::no) << "deeper than the stack may be";
}

TEST(Ebnf, RefusesWithTheLine) {
  const auto message = [](const std::string& text) { return refusal([&] { ebnf(text); }); };
  EXPECT_THAT(message("root ::= \"a\"\n\nx ::= y\n"), HasSubstr("source: line 3: rule 'y' is not defined"));
  EXPECT_THAT(message("a ::= \"b\""), HasSubstr("there is no rule 'root'"));
  EXPECT_THAT(message(""), HasSubstr("there is no rule 'root'"));
  EXPECT_THAT(message("root ::= \"a\"\nroot ::= \"b\""), HasSubstr("line 2: rule 'root' is defined twice"));
  EXPECT_THAT(message("root ::= \"a"), HasSubstr("line 1: it ends too early"));
  EXPECT_THAT(message("root ::= \"a\n\""), HasSubstr("ends with its line"));
  EXPECT_THAT(message("root ::= (\"a\""), HasSubstr("a ( without its )"));
  EXPECT_THAT(message("root ::= \"a\")"), HasSubstr("a ) without its ("));
  EXPECT_THAT(message("root ::= \"\\q\""), HasSubstr("an escape that GBNF does not have"));
  EXPECT_THAT(message("root ::= \"\\xZZ\""), HasSubstr("hexadecimal"));
  EXPECT_THAT(message("root ::= \"\\ud800\""), HasSubstr("U+D800 is not a character"));
  EXPECT_THAT(message("root ::= %"), HasSubstr("neither a literal"));
  EXPECT_THAT(message("root = \"a\""), HasSubstr("name ::="));
  EXPECT_THAT(message("root ::= \"a\"**"), HasSubstr("a repetition of a repetition"));
}

TEST(Ebnf, LeftRecursionIsRefused) {
  const auto message = [](const std::string& text) { return refusal([&] { ebnf(text); }); };
  EXPECT_THAT(message("root ::= root \"a\" | \"b\""), HasSubstr("line 1: rule 'root': it calls itself before"));
  EXPECT_THAT(message("root ::= \"x\" a\na ::= b\nb ::= \"\" c \"y\"\nc ::= \"z\"? a | \"w\""),
              HasSubstr("left recursion"));
  EXPECT_THAT(message("root ::= root"), HasSubstr("no text matches"));
  EXPECT_THAT(message("root ::= root | \"a\""), HasSubstr("left recursion"));
}

TEST(Ebnf, WhatNeverEndsIsRefusedOrLeftOut) {
  EXPECT_THAT(refusal([] { ebnf("root ::= \"a\" b\nb ::= \"b\" b"); }),
              HasSubstr("line 2: rule 'b': no text matches, or none that ends"));
  const Grammar grammar = ebnf("root ::= \"a\" b | \"c\"\nb ::= \"b\" b");
  EXPECT_EQ(state_of(grammar, "a"), TextState::no) << "nothing that has begun cannot be ended";
  EXPECT_TRUE(has(grammar, "c"));
}

TEST(Ebnf, LimitsHold) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "r" + std::to_string(i) + " ::= \"a\"\n";
  EXPECT_THAT(refusal([&] { ebnf(many); }), HasSubstr("more than 4096 rules"));
  EXPECT_THAT(refusal([&] { ebnf("root ::= " + std::string(100, '(') + "\"a\"" + std::string(100, ')')); }),
              HasSubstr("groups nest deeper than 64"));
  // A set of configurations that grows with the text is stopped.
  const Grammar ambiguous = ebnf("root ::= a\na ::= \"x\" a b | \"x\" b | \"x\"\nb ::= \"\" | \"y\"");
  Configurations configurations(ambiguous.automaton, GrammarLimits{.threads = 64});
  EXPECT_THAT(refusal(
                  [&] {
                    ConfigurationId at = configurations.start();
                    for (int i = 0; i < 200; ++i) at = configurations.step(at, 'x');
                  },
                  ErrorKind::run),
              HasSubstr("too ambiguous"));
}

}  // namespace
}  // namespace headroom
