// Answers: the text of tokens up to a stop, JSON of pieces, tool calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/answer_json.h"
#include "serve/choice_text.h"
#include "serve/server_metrics.h"
#include "serve/text_encoder.h"
#include "serve/tool_calls.h"

namespace headroom::test {
namespace {

std::vector<int32_t> bytes_of(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

struct Grown {
  std::string text, parts;
  bool stopped = false;
};

Grown grow(const std::string& prompt, const std::string& answer, const std::vector<std::string>& stops) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  ChoiceText choice(tokenizer, bytes_of(prompt), stops, false);
  Grown out;
  for (const int32_t id : bytes_of(answer)) {
    SequenceToken token;
    token.id = id;
    TokenText described;
    out.text += choice.add(token, described);
    out.parts += described.text;
    if (choice.stopped()) break;
  }
  out.text += choice.finish();
  out.stopped = choice.stopped();
  return out;
}

TEST(ChoiceTexts, EndBeforeAStopThatSpansTokens) {
  const Grown grown = grow("a ", "one two three", {"never", "o th"});
  EXPECT_EQ(grown.text, "one tw");
  EXPECT_TRUE(grown.stopped);
}

TEST(ChoiceTexts, WhatOnlyBeginsLikeAStopIsGivenInTheEnd) {
  const Grown grown = grow("a ", "one two", {"twofold"});
  EXPECT_EQ(grown.text, "one two");
  EXPECT_FALSE(grown.stopped);
}

TEST(ChoiceTexts, CharactersAreNeverCut) {
  const Grown grown = grow("", "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80", {});
  EXPECT_EQ(grown.text, "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80");
  EXPECT_EQ(grown.parts, grown.text);
  EXPECT_EQ(character_count(grown.text), 6);
}

TEST(ChoiceTexts, ACharacterThatThePromptBeginsIsTheAnswers) { EXPECT_EQ(grow("\xc3", "\xa9x", {}).text, "\xc3\xa9x"); }

TEST(Answers, APieceOfAChatNamesTheRoleOnce) {
  const AnswerHead head{TextApi::chat, "chatcmpl-1", "1", "m", 7};
  TextRequest request;
  request.api = TextApi::chat;
  AnswerPiece piece;
  piece.begins = true;
  const Json first = streamed_piece(head, request, piece, 0);
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  piece = {};
  piece.text = "x";
  EXPECT_EQ(streamed_piece(head, request, piece, 0)["choices"][0]["delta"], (Json{{"content", "x"}}));
}

TEST(Answers, LogprobsOfACompletionCountCharacters) {
  TextRequest request;
  request.best = 1;
  AnswerPiece piece;
  piece.tokens = {{1, "\xc3\xa9", -0.5f, {{"\xc3\xa9", -0.5f}}}, {2, "b", -1.0f, {{"c", -0.9f}}}};
  const Json logprobs = whole_answer({}, request, {piece})["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["text_offset"], (Json{0, 1}));
  EXPECT_EQ(logprobs["top_logprobs"][1].size(), 2u);  // the sampled token is always among them
}

TEST(ToolCalls, AreReadInTheFormsOfCommonTemplates) {
  const OrderedJson tools = OrderedJson::parse(R"([{"type":"function","function":{"name":"f"}}])");
  std::string content;
  auto calls =
      written_calls(tools, "ok <tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>", "id", content);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(content, "ok");
  EXPECT_EQ(written_calls(tools, R"({"name":"f","parameters":{}})", "id", content).size(), 1u);
  EXPECT_TRUE(written_calls(tools, R"({"name":"unknown","arguments":{}})", "id", content).empty());
}

TEST(Reserved, BytesComeBackWithTheirOwner) {
  ReservedBytes bytes(100);
  std::shared_ptr<void> first = bytes.reserve(60);
  EXPECT_TRUE(first);
  EXPECT_FALSE(bytes.reserve(50));
  first.reset();
  EXPECT_TRUE(bytes.reserve(100));
}

TEST(Metrics, AreCountersGaugesAndHistograms) {
  ServerMetrics metrics;
  metrics.request(5);
  ServerMetrics::Times times;
  metrics.token(times);
  metrics.token(times);
  metrics.ended(times, SequenceEnd::stop);
  const std::string text = metrics.text(nullptr, 0);
  EXPECT_THAT(text, testing::HasSubstr("\nvllm:prompt_tokens_total 5\n"));
  EXPECT_THAT(text, testing::HasSubstr("vllm:time_to_first_token_seconds_count 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("vllm:inter_token_latency_seconds_count 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("vllm:request_success_total{finished_reason=\"stop\"} 1\n"));
}

}  // namespace
}  // namespace headroom::test
