// Request bodies: reading, and refusals before anything is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_access.h"
#include "serve/api_error.h"
#include "serve/json_fields.h"
#include "serve/text_request.h"

namespace headroom::test {
namespace {

constexpr int64_t kVocab = 512;

TextRequest read(TextApi api, const std::string& body) {
  return read_text_request(api, parse_body(body, 1000), kVocab);
}

// The status with which a body is refused; 0 when it is accepted.
int refused(TextApi api, const std::string& body) {
  try {
    read(api, body);
  } catch (const ApiError& error) {
    EXPECT_THAT(error.body(), testing::HasSubstr("\"message\""));
    return error.status();
  }
  return 0;
}

std::string completion(const std::string& more) { return R"({"prompt":"a",)" + more + "}"; }

TEST(TextRequests, ACompletionHasTheDefaultsOfOpenAi) {
  const TextRequest request = read(TextApi::completion, R"({"prompt":"a"})");
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.best, -1);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.seed);
}

TEST(TextRequests, NullIsAbsent) {
  const TextRequest request =
      read(TextApi::completion, completion(R"("n":null,"stop":null,"seed":null,"logprobs":null)"));
  EXPECT_EQ(request.n, 1);
  EXPECT_TRUE(request.stops.empty());
}

TEST(TextRequests, PromptsAreTextsOrIdsOrListsOfThese) {
  EXPECT_EQ(read(TextApi::completion, R"({"prompt":[1,2,3]})").prompts.at(0).ids, (std::vector<int32_t>{1, 2, 3}));
  const TextRequest lists = read(TextApi::completion, R"({"prompt":[[1],[2,3]],"n":2})");
  EXPECT_EQ(lists.prompts.size(), 2u);
  EXPECT_EQ(lists.choices(), 4);
  EXPECT_EQ(read(TextApi::completion, R"({"prompt":["a","b"]})").prompts.at(1).text, "b");
  for (const char* prompt : {"{}", "[]", "[[]]", "[1.5]", R"(["a",5])", "[512]", "[-1]", "7", "true"})
    EXPECT_EQ(refused(TextApi::completion, std::string(R"({"prompt":)") + prompt + "}"), 400) << prompt;
}

TEST(TextRequests, WrongTypesAndRangesAreRefused) {
  for (const char* member : {R"("max_tokens":"x")",
                             R"("max_tokens":2.5)",
                             R"("max_tokens":-1)",
                             R"("max_tokens":1e30)",
                             R"("temperature":"hot")",
                             R"("temperature":-1)",
                             R"("top_p":1.5)",
                             R"("top_p":0)",
                             R"("n":0)",
                             R"("n":1000000)",
                             R"("stop":5)",
                             R"("stop":[1])",
                             R"("stop":"")",
                             R"("logprobs":1000000)",
                             R"("seed":"x")",
                             R"("stream":"maybe")",
                             R"("echo":1)",
                             R"("logit_bias":[1])",
                             R"("logit_bias":{"x":1})",
                             R"("logit_bias":{"512":1})",
                             R"("presence_penalty":5)",
                             R"("response_format":7)",
                             R"("response_format":{"type":"nonsense"})",
                             R"("response_format":{"type":"json_schema"})",
                             R"("stream_options":{"include_usage":true})",
                             R"("suffix":"x")",
                             R"("model":5)"})
    EXPECT_EQ(refused(TextApi::completion, completion(member)), 400) << member;
}

TEST(TextRequests, ChatsAreChecked) {
  const auto chat = [](const std::string& rest) { return R"({"messages":)" + rest + "}"; };
  for (const char* messages :
       {R"("hi")", "[]", "[5]", R"([{"content":"x"}])", R"([{"role":5,"content":"x"}])",
        R"([{"role":"user","content":5}])", R"([{"role":"user","content":[{"type":"image_url"}]}])"})
    EXPECT_EQ(refused(TextApi::chat, chat(messages)), 400) << messages;
  const std::string one = R"([{"role":"user","content":"x"}])";
  EXPECT_EQ(refused(TextApi::chat, chat(one + R"(,"top_logprobs":3)")), 400);
  EXPECT_EQ(refused(TextApi::chat, chat(one + R"(,"tool_choice":"required")")), 400);
  const TextRequest parts = read(
      TextApi::chat, chat(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"));
  EXPECT_EQ(parts.messages[0]["content"], "a\nb");
  EXPECT_EQ(read(TextApi::chat, chat(R"([{"role":"developer","content":"x"}])")).messages[0]["role"], "system");
  EXPECT_EQ(read(TextApi::chat, chat(one + R"(,"max_tokens":3,"max_completion_tokens":5)")).max_tokens, 5);
}

TEST(TextRequests, EndsOfTextsAsVllmSpellsThem) {
  const TextRequest request =
      read(TextApi::completion, completion(R"("ignore_eos":true,"stop_token_ids":[3,511],"min_tokens":4)"));
  EXPECT_TRUE(request.ignores_end);
  EXPECT_EQ(request.stop_ids, (std::vector<int32_t>{3, 511}));
  EXPECT_EQ(request.min_tokens, 4);
  for (const char* more : {R"("stop_token_ids":[512])", R"("stop_token_ids":["a"])", R"("stop_token_ids":3)",
                           R"("min_tokens":17)", R"("min_tokens":-1)", R"("ignore_eos":1)"})
    EXPECT_EQ(refused(TextApi::completion, completion(more)), 400) << more;
}

TEST(TextRequests, ChatsHaveForms) {
  const auto chat = [](const std::string& more) {
    return R"({"messages":[{"role":"assistant","content":"a"}])" + more + "}";
  };
  EXPECT_TRUE(read(TextApi::chat, chat("")).form.opens_answer);
  const ChatForm form =
      read(TextApi::chat, chat(R"(,"continue_final_message":true,"chat_template_kwargs":{"enable_thinking":false})"))
          .form;
  EXPECT_TRUE(form.goes_on);
  EXPECT_FALSE(form.opens_answer);
  EXPECT_EQ(form.arguments.dump(), R"({"enable_thinking":false})");
  EXPECT_FALSE(read(TextApi::chat, chat(R"(,"add_generation_prompt":false)")).form.opens_answer);
  EXPECT_EQ(refused(TextApi::chat, chat(R"(,"continue_final_message":true,"add_generation_prompt":true)")), 400);
  EXPECT_EQ(refused(TextApi::chat, chat(R"(,"chat_template_kwargs":[1])")), 400);
}

TEST(TextRequests, SchemasAndGrammarsAsLlamaCppSpellsThem) {
  EXPECT_EQ(read(TextApi::completion, completion(R"("json_schema":{"const":1})")).grammar->kind,
            GrammarSource::Kind::json_schema);
  EXPECT_EQ(read(TextApi::completion, completion(R"("response_format":{"type":"json_object","schema":{"const":1}})"))
                .grammar->text,
            R"({"const":1})");
  EXPECT_EQ(read(TextApi::completion, completion(R"("grammar":"root ::= \"a\"")")).grammar->kind,
            GrammarSource::Kind::ebnf);
  EXPECT_EQ(refused(TextApi::completion, completion(R"("response_format":{"type":"json_object","schema":1})")), 400);
  EXPECT_EQ(refused(TextApi::completion, completion(R"("grammar":"a","json_schema":{})")), 400);
}

TEST(TextRequests, ARequiredCallIsAGrammarOfTheTools) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  const std::string messages = R"("messages":[{"role":"user","content":"x"}],)";
  const TextRequest automatic = read(TextApi::chat, "{" + messages + tools + "}");
  EXPECT_EQ(automatic.tool_use.mode, ToolUse::Mode::automatic);
  EXPECT_FALSE(automatic.grammar);
  const TextRequest required = read(TextApi::chat, "{" + messages + tools + R"(,"tool_choice":"required"})");
  ASSERT_TRUE(required.grammar);
  EXPECT_THAT(required.grammar->text, testing::HasSubstr("\"const\":\"f\""));
  EXPECT_EQ(refused(TextApi::chat, "{" + messages + tools + R"(,"tool_choice":{"function":{"name":"g"}}})"), 400);
}

TEST(TextRequests, ToolsWhoseDefinitionsHaveOneNameKeepTheirOwn) {
  const TextRequest request =
      read(TextApi::chat, R"({"messages":[{"role":"user","content":"x"}],"tool_choice":"required",
      "tools":[{"function":{"name":"f","parameters":{"$ref":"#/$defs/T","$defs":{"T":{"const":"first"}}}}},
               {"function":{"name":"g","parameters":{"properties":{"a":{"$ref":"#/$defs/T"},"b":{"$ref":"#"}},
                                                     "$defs":{"T":{"const":{"$ref":"#/x"}}}}}}]})");
  ASSERT_TRUE(request.grammar);
  const OrderedJson schema = OrderedJson::parse(request.grammar->text);
  const auto target = [&](const OrderedJson& reference) {
    return schema.at(OrderedJson::json_pointer(reference.get<std::string>().substr(1)));
  };
  const OrderedJson f = target(schema["anyOf"][0]["properties"]["arguments"]["$ref"]);
  const OrderedJson g = target(schema["anyOf"][1]["properties"]["arguments"]["$ref"]);
  EXPECT_EQ(target(f["$ref"])["const"], "first");
  EXPECT_EQ(target(g["properties"]["a"]["$ref"])["const"], (OrderedJson{{"$ref", "#/x"}}));  // data is not changed
  EXPECT_EQ(target(g["properties"]["b"]["$ref"]), g);
}

TEST(TextRequests, WhatIsEncodedIsLetGo) {
  TextRequest request = read(TextApi::chat, R"({"messages":[{"role":"user","content":"x"}],
      "tools":[{"type":"function","function":{"name":"f","description":"long"}}]})");
  request.drop_sources();
  EXPECT_TRUE(request.messages.is_null());
  EXPECT_EQ(request.tools.dump(), R"([{"function":{"name":"f"}}])");
}

TEST(TextRequests, MembersOfASchemaKeepTheirOrder) {
  const TextRequest request = read(
      TextApi::completion,
      completion(R"("guided_json":{"type":"object","properties":{"why":{"type":"null"},"answer":{"type":"null"}}})"));
  ASSERT_TRUE(request.grammar);
  EXPECT_LT(request.grammar->text.find("why"), request.grammar->text.find("answer"));
}

TEST(Bodies, HostileOnesAreRefused) {
  const std::string deep(50'000, '['), wide = R"({"prompt":[)" + std::string(4000, ',') + "]}";
  for (const std::string& body : {std::string(), std::string("{"), std::string("null"), std::string("[]"), deep, wide,
                                  std::string(R"({"prompt":NaN})"), std::string(R"({"prompt":1e400})"),
                                  std::string("{\"prompt\":\"\xff\"}"), std::string(R"({"prompt":"\ud800"})")})
    EXPECT_EQ(refused(TextApi::completion, body), 400) << body.substr(0, 20);
}

TEST(Bodies, CommasInTextsAreNoValues) {
  EXPECT_EQ(refused(TextApi::completion, R"({"prompt":")" + std::string(4000, ',') + R"(\"[["})"), 0);
}

TEST(Keys, ABearerTokenInAnyCase) {
  const std::vector<std::string> keys{"sk-one", "sk-two"};
  EXPECT_TRUE(has_key("Bearer sk-one", keys));
  EXPECT_TRUE(has_key("bearer sk-two", keys));
  for (const char* wrong : {"", "Bearer", "Bearer ", "sk-one", "Basic sk-one", "Bearer sk-on", "Bearer sk-onex"})
    EXPECT_FALSE(has_key(wrong, keys)) << wrong;
}

TEST(Keys, AnthropicsClientsSendTheKeyAlone) {
  EXPECT_TRUE(is_key("sk-one", {"sk-one"}));
  EXPECT_FALSE(is_key("", {"sk-one"}));
  EXPECT_FALSE(is_key("Bearer sk-one", {"sk-one"}));
}

}  // namespace
}  // namespace headroom::test
