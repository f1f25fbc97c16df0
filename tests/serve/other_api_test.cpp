// Requests of /v1/responses and /v1/messages, read as chats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"
#include "serve/json_fields.h"
#include "serve/message_request.h"
#include "serve/response_request.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

TextRequest response(const std::string& body) { return read_response_request(OrderedJson::parse(body), 512); }
TextRequest message(const std::string& body) { return read_message_request(OrderedJson::parse(body), 512, false); }

template <typename Read>
void expect_refused(const Read& read, const std::string& body, const std::string& param) {
  try {
    read(body);
    ADD_FAILURE() << "taken: " << body;
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400) << body;
    EXPECT_EQ(error.param(), param) << error.what();
  }
}

TEST(ResponseRequests, ATextIsAUsersMessageBehindTheInstructions) {
  const TextRequest request = response(R"({"input":"hi","instructions":"be brief","max_output_tokens":9,"top_p":0.5})");
  EXPECT_EQ(request.messages, OrderedJson::parse(R"([{"role":"system","content":"be brief"},
                                                     {"role":"user","content":"hi"}])"));
  EXPECT_EQ(request.api, TextApi::response);
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.sampling.top_p, 0.5);
  EXPECT_THAT(request.settings, HasSubstr("\"instructions\":\"be brief\""));
}

TEST(ResponseRequests, ItemsAreMessagesCallsAndTheirOutputs) {
  const TextRequest request = response(R"({"instructions":"a","input":[
      {"role":"developer","content":[{"type":"input_text","text":"b"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]},
      {"type":"function_call","call_id":"1","name":"f","arguments":"{\"x\":1}"},
      {"type":"function_call","call_id":"2","name":"g","arguments":"{}"},
      {"type":"function_call_output","call_id":"1","output":"d"}]})");
  ASSERT_EQ(request.messages.size(), 3u);
  EXPECT_EQ(request.messages[0]["content"], "a\n\nb");
  EXPECT_EQ(request.messages[1]["tool_calls"].size(), 2u);
  EXPECT_EQ(request.messages[1]["tool_calls"][0]["function"]["arguments"]["x"], 1);  // an object, as templates expect
  EXPECT_EQ(request.messages[2], OrderedJson::parse(R"({"role":"tool","tool_call_id":"1","content":"d"})"));
}

TEST(ResponseRequests, ToolsAndFormatsAreThoseOfAChat) {
  const std::string tools = R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}])";
  const TextRequest named = response(R"({"input":"x",)" + tools + R"(,"tool_choice":{"type":"function","name":"f"}})");
  EXPECT_EQ(named.tool_use.mode, ToolUse::Mode::named);
  EXPECT_EQ(named.tools[0]["function"]["name"], "f");
  const TextRequest shaped =
      response(R"({"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"null"}}}})");
  ASSERT_TRUE(shaped.grammar);
  EXPECT_EQ(shaped.grammar->text, R"({"type":"null"})");
}

TEST(ResponseRequests, WhatIsNotServedIsRefusedByItsName) {
  const auto refused = [](const std::string& more, const std::string& param) {
    expect_refused(response, R"({"input":"x",)" + more + "}", param);
  };
  refused(R"("previous_response_id":"resp_1")", "previous_response_id");
  refused(R"("conversation":"c")", "conversation");
  refused(R"("background":true)", "background");
  refused(R"("truncation":"auto")", "truncation");
  refused(R"("max_output_tokens":0)", "max_output_tokens");
  refused(R"("tools":[{"type":"web_search"}])", "tools");
  refused(R"("tool_choice":"required")", "tool_choice");
  refused(R"("text":{"format":{"type":"x"}})", "text.format.type");
  refused(R"("store":5)", "store");
  expect_refused(response, "{}", "input");
  expect_refused(response, R"({"input":[]})", "input");
  expect_refused(response, R"({"input":[{"type":"item_reference","id":"1"}]})", "input[0].type");
  expect_refused(response, R"({"input":[{"role":"x","content":"y"}]})", "input[0].role");
  expect_refused(response, R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "input[0].content");
}

TEST(ResponseRequests, LongInstructionsAreNotRepeated) {
  const std::string settings =
      response(R"({"input":"x","temperature":0.5,"instructions":")" + std::string(kMostRepeated, 'a') + "\"}").settings;
  EXPECT_LE(settings.size(), kMostRepeated);
  EXPECT_THAT(settings, HasSubstr("\"instructions\":null"));
  EXPECT_THAT(settings, HasSubstr("\"temperature\":0.5"));
}

TEST(MessageRequests, SystemAndBlocksAreMessagesOfAChat) {
  const TextRequest request = message(R"({"max_tokens":4,"system":[{"type":"text","text":"s"}],
      "stop_sequences":["END"],"top_k":3,"messages":[
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":[{"type":"text","text":"c"},
                                     {"type":"tool_use","id":"1","name":"f","input":{"x":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"d"}]},
                                {"type":"text","text":"e"}]}]})");
  EXPECT_EQ(request.messages, OrderedJson::parse(R"([{"role":"system","content":"s"},{"role":"user","content":"a\nb"},
      {"role":"assistant","content":"c",
       "tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
      {"role":"tool","tool_call_id":"1","content":"d"},{"role":"user","content":"e"}])"));
  EXPECT_EQ(request.stops, std::vector<std::string>{"END"});
  EXPECT_EQ(request.max_tokens, 4);
  EXPECT_EQ(request.api, TextApi::message);
}

TEST(MessageRequests, ALastMessageOfTheAssistantIsGoneOnFrom) {
  const TextRequest request =
      message(R"({"max_tokens":4,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})");
  EXPECT_EQ(request.prefill, "b");
  EXPECT_EQ(request.messages.size(), 1u);
}

TEST(MessageRequests, ThinkingIsTheTemplates) {
  const auto thinks = [](const std::string& type) {
    return message(R"({"max_tokens":4,"thinking":{"type":")" + type + R"(","budget_tokens":9},"messages":[
        {"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"s"},{"type":"text","text":"c"}]},
        {"role":"user","content":"d"}]})");
  };
  const TextRequest request = thinks("enabled");
  EXPECT_EQ(request.form.arguments.dump(), R"({"enable_thinking":true})");
  EXPECT_EQ(request.messages[1].dump(), R"({"role":"assistant","content":"c"})");
  EXPECT_EQ(thinks("disabled").form.arguments.dump(), R"({"enable_thinking":false})");
}

TEST(MessageRequests, ToolChoicesAreThoseOfAChat) {
  const auto mode = [](const std::string& choice) {
    return message(R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}],
        "tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":)" +
                   choice + "}")
        .tool_use.mode;
  };
  EXPECT_EQ(mode(R"({"type":"auto"})"), ToolUse::Mode::automatic);
  EXPECT_EQ(mode(R"({"type":"any"})"), ToolUse::Mode::required);
  EXPECT_EQ(mode(R"({"type":"tool","name":"f"})"), ToolUse::Mode::named);
  EXPECT_EQ(mode(R"({"type":"none"})"), ToolUse::Mode::none);
}

TEST(MessageRequests, WhatIsNotServedIsRefusedByItsName) {
  const auto refused = [](const std::string& more, const std::string& param) {
    expect_refused(message, R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}],)" + more + "}", param);
  };
  refused(R"("thinking":{"type":"much"})", "thinking.type");
  refused(R"("tools":[{"type":"bash_20250124","name":"bash"}])", "tools");
  refused(R"("tool_choice":{"type":"any"})", "tool_choice");
  refused(R"("tool_choice":{"type":"x"})", "tool_choice.type");
  refused(R"("stop_sequences":[""])", "stop_sequences");
  refused(R"("system":5)", "system");
  expect_refused(message, R"({"messages":[{"role":"user","content":"a"}]})", "max_tokens");
  expect_refused(message, R"({"max_tokens":4,"messages":[]})", "messages");
  expect_refused(message, R"({"max_tokens":4,"messages":[{"role":"user","content":[]}]})", "messages");
  expect_refused(message, R"({"max_tokens":4,"messages":[{"role":"system","content":"a"}]})", "messages[0].role");
  expect_refused(message, R"({"max_tokens":4,"messages":[{"role":"user","content":[{"type":"image"}]}]})",
                 "messages[0].content[0].type");
  EXPECT_NO_THROW(
      read_message_request(OrderedJson::parse(R"({"messages":[{"role":"user","content":"a"}]})"), 512, true));
}

TEST(MessageRequests, ErrorsHaveAnthropicsShape) {
  EXPECT_EQ(ApiError(404, "no model").message_body(),
            R"({"error":{"message":"no model","type":"not_found_error"},"type":"error"})");
  EXPECT_THAT(ApiError(413, "x").message_body(), HasSubstr("request_too_large"));
  EXPECT_THAT(ApiError(500, "x").message_body(), HasSubstr("api_error"));
}

}  // namespace
}  // namespace headroom::test
