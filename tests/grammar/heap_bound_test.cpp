// The stated heap bounds hold: every allocation of this program is counted.
#include <gtest/gtest.h>

#include <filesystem>

#include "../formats/counted_heap.h"
#include "base/counter_random.h"
#include "vocabulary.h"

namespace headroom {
namespace {

using counted_heap::live;
using counted_heap::peak;

constexpr int64_t kRounding = 256;  // of the allocator, for the few blocks that exist

GrammarSource source_of(GrammarSource::Kind kind, std::string text) {
  GrammarSource source;
  source.kind = kind;
  source.name = "source";
  source.text = std::move(text);
  return source;
}

std::string repeated(const std::string& unit, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += unit;
  return text;
}

// Large and hostile ones; some are refused.
std::vector<GrammarSource> sources() {
  using Kind = GrammarSource::Kind;
  std::string chain = R"({"$defs":{)", rules, properties = R"({"type":"object","properties":{)";
  for (int i = 0; i < 40; ++i)
    chain +=
        fmt::format(R"("a{}":{{"allOf":[{{"$ref":"#/$defs/a{}"}},{{"properties":{{"p{}":{{}}}}}}]}},)", i, i + 1, i);
  chain += R"("a40":{}},"$ref":"#/$defs/a0","type":"object"})";
  for (int i = 0; i < 4000; ++i) rules += fmt::format("r{} ::= \"a\" r{}*\n", i, i + 1);
  for (int i = 0; i < 1000; ++i) properties += fmt::format(R"("name{}":{{"type":"string","maxLength":9}},)", i);
  return {source_of(Kind::json_object, ""),
          source_of(Kind::regular_expression, "(a|b|[c-z]{3}){1,500}"),
          source_of(Kind::regular_expression, repeated("[^a]|", 20000) + "b"),
          source_of(Kind::regular_expression, repeated("(((a))b)?", 10000)),
          source_of(Kind::ebnf, "root ::= r0\n" + rules + "r4000 ::= \"\"\n"),
          source_of(Kind::ebnf, "root ::= \"" + repeated("ab", 30000) + "\"\n"),
          source_of(Kind::json_schema, properties + R"("last":{}}})"),
          source_of(Kind::json_schema, "{\"enum\":[" + repeated("{},", 40000) + "[]]}"),
          source_of(Kind::json_schema, chain),
          source_of(Kind::json_schema,
                    R"({"$defs":{"a":{"properties":{"p":{"$ref":"#/$defs/a","minimum":5}}}},"$ref":"#/$defs/a"})")};
}

TEST(GrammarHeap, CompilingStaysBelowItsBound) {
  int compiled = 0;
  for (const GrammarSource& source : sources()) {
    const int64_t before = live;
    peak = before;
    try {
      const Grammar grammar = compile_grammar(source);
      const int64_t held = live - before;
      EXPECT_LE(held, grammar.automaton.memory_bytes() + kRounding);
      ++compiled;
    } catch (const Error&) {
    }
    EXPECT_LE(peak - before, source.compile_bound({})) << source.text.substr(0, 60);
  }
  EXPECT_GT(compiled, 3);
}

TEST(GrammarHeap, TheTrieStaysBelowItsBound) {
  for (const std::filesystem::path& folder : test::data_files("tokenizers"))
    for (const char* name : {"gpt2", "llama2", "qwen2.5"}) {
      const std::filesystem::path file = folder / name / "tokenizer.json";
      const Tokenizer tokenizer = Tokenizer::load(file);
      const TokenBytes tokens(tokenizer);
      const int64_t before = live;
      peak = before;
      const TokenTrie trie(tokens, tokenizer.vocab_size());
      EXPECT_LE(live - before, trie.memory_bytes() + kRounding);
      EXPECT_LE(peak - before, TokenTrie::build_bound(static_cast<int64_t>(std::filesystem::file_size(file))));
    }
}

// Along random texts with many configurations and masks.
TEST(GrammarHeap, AMatcherStaysBelowItsBound) {
  const Vocabulary vocabulary = Vocabulary::stories();
  GrammarLimits small;
  small.table_bytes = 64 << 10;
  small.cache_bytes = 8 << 10;
  small.threads = 512;
  const GrammarSource object = sources()[0], wide = sources()[6];
  const GrammarSource letters = source_of(GrammarSource::Kind::regular_expression, "[a-f]{1,500}(c|d.|e)*");
  for (const GrammarSource& source : {object, letters, wide})
    for (const GrammarLimits& limits : {GrammarLimits(), small}) {
      if (source.text == wide.text && limits.threads == small.threads) continue;  // has more configurations
      const Grammar grammar = compile_grammar(source);
      const int64_t before = live;
      peak = before;
      GrammarMatcher matcher(grammar.automaton, vocabulary.trie, vocabulary.tokens, {}, limits);
      for (uint64_t n = 0; n < 400 && !matcher.must_end(); ++n) {
        const TokenMask& mask = matcher.allowed();
        auto id = static_cast<int32_t>(mix64(n) % static_cast<uint64_t>(mask.vocab()));
        if (mask.count() == 0) break;
        while (!mask.allows(id)) id = (id + 1) % static_cast<int32_t>(mask.vocab());
        matcher.accept(id);
      }
      EXPECT_LE(peak - before, matcher.memory_bytes());
    }
}

}  // namespace
}  // namespace headroom
