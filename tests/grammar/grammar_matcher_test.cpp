#include "grammar/grammar_matcher.h"

#include <gmock/gmock.h>

#include <set>

#include "base/counter_random.h"
#include "formats/json.h"
#include "schema_validator.h"
#include "tokenizer/utf8.h"
#include "vocabulary.h"

namespace headroom {
namespace {

// The allowed ids of a mask, in order.
std::vector<int32_t> allowed_ids(const TokenMask& mask) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < mask.vocab(); ++id)
    if (mask.allows(id)) ids.push_back(id);
  return ids;
}

// The mask computed token by token: the text so far and the token are decoded together.
void expect_mask(const Grammar& grammar, const Vocabulary& vocabulary, GrammarText& text) {
  const TokenMask& mask = text.matcher().allowed();
  Configurations configurations(grammar.automaton, {});
  ConfigurationId at = configurations.start();
  std::string bytes;
  for (const int32_t id : text.ids) bytes += vocabulary.tokens.of(id);
  const auto dropped = static_cast<size_t>(vocabulary.tokens.leading_spaces());
  const auto without_spaces = [&](std::string whole) {
    whole.erase(0, std::min(dropped, std::min(whole.find_first_not_of(' '), whole.size())));
    return whole;
  };
  for (const char byte : without_spaces(bytes)) at = configurations.step(at, static_cast<uint8_t>(byte));
  const size_t taken = without_spaces(bytes).size();
  for (int32_t id = 0; id < mask.vocab(); ++id) {
    const std::string more = vocabulary.tokens.of(id);
    bool expected = !more.empty() && id != text.end();
    ConfigurationId then = at;
    const std::string whole = without_spaces(bytes + more);
    for (size_t i = taken; expected && i < whole.size(); ++i) {
      then = configurations.step(then, static_cast<uint8_t>(whole[i]));
      expected = then != Configurations::kDead;
    }
    if (id == text.end()) expected = configurations.ends(at);
    ASSERT_EQ(mask.allows(id), expected) << "token " << id << " '" << more << "' behind '" << text.text() << "'";
  }
}

struct RandomSchema {
  const char* text;
  int length;  // maximum number of tokens
};

const RandomSchema kSchemas[] = {
    {R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":-7,"maximum":120},"tags":{"type":"array","items":{"enum":["red","blue","é\"\n"]},"minItems":1,"maxItems":3},"size":{"type":"number","exclusiveMinimum":0,"maximum":2.5}},"required":["name","size"],"additionalProperties":false})",
     400},
    {R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":["boolean","null"]},"kids":{"type":"array","items":{"$ref":"#/$defs/node"},"maxItems":2}},"required":["v"]}},"$ref":"#/$defs/node"})",
     2000},
    {R"({"type":"array","prefixItems":[{"type":"integer","minimum":10},{"type":"string","pattern":"^[a-f]{2,4}(-[0-9]+)?$"}],"items":{"anyOf":[{"type":"null"},{"type":"string","minLength":1,"maxLength":2}]},"minItems":3,"maxItems":5})",
     400},
    {R"({"type":"object","properties":{"a":{"const":1}},"additionalProperties":{"type":"integer"}})", 300},
    {R"({"allOf":[{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},{"properties":{"x":{"minimum":5,"maximum":40},"y":{"type":"string","maxLength":5}}}]})",
     300},
};

class RandomTexts : public testing::TestWithParam<int> {};

// Every text of random allowed tokens is valid when it ends, and is always UTF-8.
TEST_P(RandomTexts, AreValid) {
  const RandomSchema& of = kSchemas[GetParam()];
  const Grammar grammar = schema(of.text);
  const SchemaValidator validator(of.text);
  const Vocabulary vocabulary = Vocabulary::stories();
  int whole = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GrammarText text(grammar, vocabulary);
    for (int n = 0; n < of.length; ++n) {
      const std::vector<int32_t> ids = allowed_ids(text.matcher().allowed());
      ASSERT_FALSE(ids.empty()) << text.text();
      const int32_t id = ids[mix64(seed * 100003 + static_cast<uint64_t>(n)) % ids.size()];
      if (id == text.end()) break;
      text.add(id);
    }
    if (!text.matcher().may_end()) continue;
    ++whole;
    ASSERT_EQ(check_utf8(text.text()).valid, text.text().size());
    const Json value = Json::parse(text.text(), nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << text.text();
    EXPECT_TRUE(validator.is_valid(value)) << text.text();
  }
  EXPECT_GT(whole, 10);
}

// Along random texts, masks are exactly what trying each token separately allows.
TEST_P(RandomTexts, MasksAreThoseOfEveryTokenAlone) {
  const Grammar grammar = schema(kSchemas[GetParam()].text);
  const Vocabulary vocabulary = Vocabulary::stories();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    GrammarText text(grammar, vocabulary);
    for (int n = 0; n < 60 && !text.matcher().must_end(); ++n) {
      ASSERT_NO_FATAL_FAILURE(expect_mask(grammar, vocabulary, text));
      const std::vector<int32_t> ids = allowed_ids(text.matcher().allowed());
      const int32_t id = ids[mix64(seed * 7919 + static_cast<uint64_t>(n)) % ids.size()];
      if (id == text.end()) break;
      text.add(id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemas, RandomTexts, testing::Range(0, static_cast<int>(std::size(kSchemas))));

TEST(GrammarMatcher, TheTextIsWhatTheDecoderShows) {
  const Vocabulary vocabulary = Vocabulary::stories();
  const Grammar grammar = regex("[ a-zé]{40,50}");
  for (uint64_t seed = 0; seed < 40; ++seed) {
    GrammarText text(grammar, vocabulary);
    while (!text.matcher().must_end()) {
      const std::vector<int32_t> ids = allowed_ids(text.matcher().allowed());
      const int32_t id = ids[mix64(seed << 20 | text.ids.size()) % ids.size()];
      if (id == text.end()) break;
      text.add(id);
    }
    EXPECT_TRUE(has(grammar, text.text())) << '\'' << text.text() << '\'';
    EXPECT_EQ(text.text().find(text.shown), 0u);
  }
}

TEST(GrammarMatcher, EndTokensStandWhereTheTextMayEnd) {
  const Vocabulary vocabulary(tokenizer_of({"ab", "abc"}));
  GrammarText text(regex("ab(c|d)?"), vocabulary);
  GrammarMatcher& matcher = text.matcher();
  const int32_t ab = vocabulary.tokenizer.token_id("ab").value();
  EXPECT_EQ(allowed_ids(matcher.allowed()), (std::vector<int32_t>{'a', ab, ab + 1}));
  EXPECT_FALSE(matcher.may_end());
  text.add(ab);
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.must_end());
  EXPECT_EQ(allowed_ids(matcher.allowed()), (std::vector<int32_t>{'c', 'd', text.end()}));
  text.add('d');
  EXPECT_TRUE(matcher.must_end());
  EXPECT_EQ(allowed_ids(matcher.allowed()), (std::vector<int32_t>{text.end()}));
}

TEST(GrammarMatcher, CharactersMayBeSplitAcrossTokens) {
  const Vocabulary vocabulary(tokenizer_of({}));
  GrammarText text(regex("[é漢]{2}"), vocabulary);
  const std::string bytes = "漢é";
  for (const char byte : bytes) {
    const auto id = static_cast<int32_t>(static_cast<uint8_t>(byte));
    ASSERT_TRUE(text.matcher().allowed().allows(id));
    EXPECT_LE(text.matcher().allowed().count(), 2) << "no byte that would not be a character";
    text.add(id);
  }
  EXPECT_EQ(text.text(), bytes);
  EXPECT_TRUE(text.matcher().must_end());
}

// The mask inside a string is computed once, whatever contains the string.
TEST(GrammarMatcher, MasksAreKeptWhateverLiesAround) {
  const Vocabulary vocabulary(tokenizer_of({"\",", "\":", "\"}", "x\",", "ab"}));
  const Grammar grammar = schema(
      R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"string"}}},"d":{"type":"string"}}})");
  GrammarText text(grammar, vocabulary);
  const auto add = [&](const std::string& bytes) {
    for (const char byte : bytes) text.add(static_cast<uint8_t>(byte));
  };
  add(R"({"a":"x)");
  const int32_t comma = vocabulary.tokenizer.token_id("\",").value();
  EXPECT_TRUE(text.matcher().allowed().allows(comma));
  EXPECT_TRUE(text.matcher().allowed().allows(comma + 3));
  EXPECT_TRUE(text.matcher().allowed().allows(comma + 2));
  const int64_t computed = text.matcher().masks_computed();
  add(R"(","b":{"c":"y)");
  EXPECT_TRUE(text.matcher().allowed().allows(comma + 2));
  EXPECT_FALSE(text.matcher().allowed().allows(comma)) << "c is the last property";
  add(R"("},"d":"z)");
  EXPECT_TRUE(text.matcher().allowed().allows(comma + 2));
  EXPECT_FALSE(text.matcher().allowed().allows(comma));
  EXPECT_EQ(text.matcher().masks_computed(), computed);
  EXPECT_GE(text.matcher().kept_masks_used(), 2);
}

TEST(GrammarMatcher, SmallTablesGiveTheSameMasks) {
  const Vocabulary vocabulary = Vocabulary::stories();
  const Grammar grammar = schema(kSchemas[0].text);
  GrammarLimits small;
  small.table_bytes = 40 << 10;
  small.threads = 256;
  small.cache_bytes = 4 << 10;
  GrammarText large(grammar, vocabulary), tight(grammar, vocabulary, small);
  EXPECT_LT(tight.matcher().memory_bytes(), large.matcher().memory_bytes() / 8);
  for (int n = 0; n < 200 && !large.matcher().must_end(); ++n) {
    const std::vector<int32_t> ids = allowed_ids(large.matcher().allowed());
    ASSERT_EQ(allowed_ids(tight.matcher().allowed()), ids);
    const int32_t id = ids[mix64(static_cast<uint64_t>(n)) % ids.size()];
    if (id == large.end()) break;
    large.add(id);
    tight.add(id);
  }
}

TEST(GrammarMatcher, WorkBeyondTheLimitIsAnError) {
  const Vocabulary vocabulary = Vocabulary::stories();
  const Grammar grammar = regex("[a-z ]*");
  GrammarLimits little;
  little.mask_steps = 20;
  GrammarText text(grammar, vocabulary, little);
  EXPECT_THAT(refusal([&] { text.matcher().allowed(); }, ErrorKind::run), testing::HasSubstr("more than 20 steps"));
}

TEST(GrammarMatcher, ATextThatTheVocabularyCannotSpellHasNoTokens) {
  Json json = Json::parse(bytes_tokenizer_json());
  json["model"]["vocab"].erase("x");
  const Vocabulary vocabulary(Tokenizer::from_json(json.dump(), "test"));
  GrammarText text(regex("ax"), vocabulary);
  text.add('a');
  EXPECT_EQ(text.matcher().allowed().count(), 0);
}

// Every accepted text of a set can be reached with any tokens, and every other text is blocked.
TEST(GrammarMatcher, ReachesExactlyTheGrammarsTexts) {
  const Vocabulary vocabulary(tokenizer_of({"ab", "bc", "abc", "b1", "1a"}));
  const Grammar grammar = regex("(ab|bc?1){1,2}");
  const std::string alphabet = "abc1";
  int reached = 0;
  for (int number = 0; number < 4096 * 4; ++number) {  // all texts of up to seven characters
    std::string text;
    for (int rest = number + 4; rest > 1; rest /= 4) text.push_back(alphabet[static_cast<size_t>(rest % 4)]);
    GrammarText by(grammar, vocabulary);
    bool goes_on = true;
    for (size_t at = 0; goes_on && at < text.size(); ++at) {
      const auto id = static_cast<int32_t>(static_cast<uint8_t>(text[at]));
      goes_on = by.matcher().allowed().allows(id);
      if (goes_on) by.add(id);
    }
    const bool whole = goes_on && by.matcher().may_end();
    ASSERT_EQ(whole, has(grammar, text)) << text;
    reached += whole;
  }
  EXPECT_GT(reached, 3);
}

TEST(TokenTrie, HasEveryTokenOnce) {
  const Vocabulary vocabulary = Vocabulary::stories();
  std::set<int32_t> seen;
  std::string path;
  for (uint32_t node = 1; node < vocabulary.trie.size(); ++node) {
    path.resize(vocabulary.trie.depth(node) - 1U);
    path.push_back(static_cast<char>(vocabulary.trie.byte(node)));
    for (const int32_t id : vocabulary.trie.ids(node)) {
      EXPECT_EQ(vocabulary.tokens.of(id), path);
      EXPECT_TRUE(seen.insert(id).second);
    }
    ASSERT_GT(vocabulary.trie.skip(node), node);
  }
  for (int32_t id = 0; id < vocabulary.trie.vocab(); ++id)
    EXPECT_EQ(seen.contains(id), !vocabulary.tokens.of(id).empty());
}

}  // namespace
}  // namespace headroom
