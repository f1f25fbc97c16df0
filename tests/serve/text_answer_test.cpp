// Answers as a client gets them while tokens arrive.
#include "serve/text_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/server_metrics.h"

namespace headroom::test {
namespace {

class KeptExchange final : public HttpExchange {
 public:
  const HttpRequest& request() const override { return request_; }
  void send(int, std::string, std::string body, HttpHeaders) override { whole = Json::parse(body); }
  void begin_events(HttpHeaders) override {}
  void event(std::string text) override { add(text); }
  void end_events(std::string last) override { add(last); }
  void on_gone(std::function<void()>) override {}

  std::vector<Json> events;
  Json whole;

 private:
  void add(const std::string& text) {
    for (size_t at = 0; (at = text.find("data: {", at)) != std::string::npos; at = text.find("\n\n", at))
      events.push_back(Json::parse(text.substr(at + 6, text.find("\n\n", at) - at - 6)));
  }
  HttpRequest request_;
};

// The answer of a model that outputs `text`, byte by byte.
std::shared_ptr<KeptExchange> answered(TextApi api, bool stream, const std::string& text, SequenceEnd end,
                                       bool return_ids = false) {
  static const Tokenizer tokenizer = Tokenizer::bytes();
  ServerMetrics metrics;
  TextRequest request;
  request.api = api;
  request.stream = stream;
  request.return_ids = return_ids;
  request.tools = OrderedJson::parse(R"([{"function":{"name":"f"}}])");
  request.tool_use.mode = ToolUse::Mode::automatic;
  request.settings = "{}";
  EncodedText encoded;
  encoded.prompts = {{1, 2}};
  encoded.max_tokens = 1000;
  const auto exchange = std::make_shared<KeptExchange>();
  const AnswerHead head{api, "id", "k", "m", 7};
  const auto answer =
      std::make_shared<TextAnswer>(exchange, head, std::move(request), std::move(encoded), tokenizer, metrics, nullptr);
  const std::vector<SequenceRequest> sequences = answer->sequences(0);
  answer->admitted({1});
  for (const char c : text) {
    SequenceToken token;
    token.id = static_cast<uint8_t>(c);
    sequences[0].listener->on_token(token);
  }
  sequences[0].listener->on_end(end, static_cast<int64_t>(text.size()), 0, {});
  return exchange;
}

const std::string kCall = "I look. <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}</tool_call>";

struct Chat {
  std::string text, id, name, arguments, finish;
  size_t parts = 0, ids = 0;
};

Chat streamed_chat(const std::string& text, SequenceEnd end, bool return_ids = false) {
  Chat out;
  const auto exchange = answered(TextApi::chat, true, text, end, return_ids);
  for (const Json& event : exchange->events) {
    const Json& choice = event["choices"][0];
    const Json& delta = choice["delta"];
    if (delta.contains("content")) out.text += delta["content"];
    if (!choice["finish_reason"].is_null()) out.finish = choice["finish_reason"];
    if (choice.contains("token_ids")) out.ids += choice["token_ids"].size();
    if (!delta.contains("tool_calls")) continue;
    const Json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    if (out.parts++ == 0) {
      out.id = call["id"];
      out.name = call["function"]["name"];
      EXPECT_EQ(call["type"], "function");
    } else {
      EXPECT_FALSE(call.contains("id") || call["function"].contains("name")) << call;
    }
    out.arguments += call["function"]["arguments"];
  }
  return out;
}

TEST(TextAnswers, CallsOfTheModelsOwnAreStreamedAsTheyGrow) {
  const Chat chat = streamed_chat(kCall, SequenceEnd::stop, true);
  EXPECT_EQ(chat.text, "I look.");
  EXPECT_EQ(chat.id, "call_k00");
  EXPECT_EQ(chat.name, "f");
  EXPECT_EQ(chat.arguments, R"({"a": [1, 2]})");
  EXPECT_GT(chat.parts, 8u);
  EXPECT_EQ(chat.finish, "tool_calls");
  EXPECT_EQ(chat.ids, kCall.size());  // each token comes once
  const Json whole = answered(TextApi::chat, false, kCall, SequenceEnd::stop)->whole["choices"][0];
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["message"]["content"], chat.text);
  EXPECT_EQ(whole["message"]["tool_calls"][0]["id"], chat.id);
  EXPECT_EQ(Json::parse(whole["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>()),
            Json::parse(chat.arguments));
}

TEST(TextAnswers, ACallThatIsCutSaysSo) {
  const Chat cut = streamed_chat(kCall.substr(0, kCall.find("2]")), SequenceEnd::length);
  EXPECT_EQ(cut.arguments, R"({"a": [1,)");
  EXPECT_EQ(cut.finish, "length");
}

TEST(TextAnswers, TextWithoutCallsComesWhole) {
  const std::string text = " {\"name\": \"other\"} and <tool_call> and <tool";
  const Chat chat = streamed_chat(text, SequenceEnd::stop);
  EXPECT_EQ(chat.text, text);
  EXPECT_EQ(chat.finish, "stop");
  EXPECT_EQ(chat.parts, 0u);
}

TEST(TextAnswers, AMessageHasItsBlocksAndAResponseItsItems) {
  std::string text, input;
  Json reason;
  const auto message = answered(TextApi::message, true, kCall, SequenceEnd::stop);
  for (const Json& event : message->events) {
    if (event["type"] == "message_delta") reason = event["delta"]["stop_reason"];
    if (event["type"] != "content_block_delta") continue;
    const Json& delta = event["delta"];
    if (delta["type"] == "text_delta") text += delta["text"];
    if (delta["type"] == "input_json_delta") input += delta["partial_json"];
  }
  EXPECT_EQ(text, "I look.");
  EXPECT_EQ(input, R"({"a": [1, 2]})");
  EXPECT_EQ(reason, "tool_use");

  size_t deltas = 0;
  const auto exchange = answered(TextApi::response, true, kCall, SequenceEnd::stop);
  for (const Json& event : exchange->events) deltas += event["type"] == "response.function_call_arguments.delta";
  EXPECT_GT(deltas, 8u);
  const Json output = exchange->events.back()["response"]["output"];
  EXPECT_EQ(output[0]["content"][0]["text"], "I look.");
  EXPECT_EQ(output[1]["arguments"], R"({"a": [1, 2]})");
}

}  // namespace
}  // namespace headroom::test
