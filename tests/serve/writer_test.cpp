// Answers in each API's format: events in order, whole answers, calls in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/answer_writer.h"
#include "serve/growing_call.h"
#include "serve/response_request.h"

namespace headroom::test {
namespace {

using testing::ElementsAre;

std::vector<Json> events_of(const std::string& text) {
  std::vector<Json> events;
  for (size_t at = 0; (at = text.find("data: ", at)) != std::string::npos; at = text.find("\n\n", at)) {
    const std::string data = text.substr(at + 6, text.find("\n\n", at) - at - 6);
    events.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
  }
  return events;
}

std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event.at("type"));
  return types;
}

AnswerPiece text_piece(const std::string& text, const std::string& finish = {}) {
  AnswerPiece piece;
  piece.text = text;
  piece.finish = finish;
  return piece;
}

AnswerPiece call_piece(ToolCall call, const std::string& finish = {}) {
  AnswerPiece piece;
  piece.calls.push_back(std::move(call));
  piece.finish = finish;
  return piece;
}

// Text, then a call in two parts.
std::vector<AnswerPiece> pieces() {
  return {text_piece("Let me "), text_piece("see."), call_piece({0, "call_1", "f", "{\"a\""}),
          call_piece({0, "", "", ":1}"}, "tool_calls")};
}

AnswerPiece joined() {
  AnswerPiece piece = call_piece({0, "call_1", "f", "{\"a\":1}"}, "tool_calls");
  piece.text = "Let me see.";
  return piece;
}

const AnswerUsage kUsage{5, 7, 2};

TextRequest response_request(bool stream) {
  OrderedJson body{{"input", "x"}, {"stream", stream}, {"temperature", 0.5}};
  return read_response_request(body, 512);
}

std::vector<Json> streamed(const AnswerHead& head, const TextRequest& request, const std::vector<AnswerPiece>& all,
                           const std::string& error = {}) {
  const std::unique_ptr<AnswerWriter> writer = make_answer_writer(head, request);
  std::string text = writer->begin({5, 0, 0});
  for (const AnswerPiece& piece : all) text += writer->piece(piece);
  return events_of(text + writer->end(kUsage, error));
}

const AnswerHead kResponse{TextApi::response, "resp_k", "k", "m", 7};
const AnswerHead kMessage{TextApi::message, "msg_k", "k", "m", 7};

TEST(ResponseWriters, EventsComeInTheirOrderAndAreNumbered) {
  const TextRequest request = response_request(true);
  const std::vector<Json> events = streamed(kResponse, request, pieces());
  EXPECT_THAT(types_of(events),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.output_text.delta", "response.output_text.delta",
                          "response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response.output_item.added", "response.function_call_arguments.delta",
                          "response.function_call_arguments.delta", "response.function_call_arguments.done",
                          "response.output_item.done", "response.completed"));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["sequence_number"], i);
  EXPECT_EQ(events[6]["text"], "Let me see.");
  EXPECT_EQ(events[12]["arguments"], "{\"a\":1}");
  EXPECT_EQ(events[11]["output_index"], 1);
  EXPECT_EQ(events[11]["item_id"], events[9]["item"]["id"]);
  EXPECT_EQ(events[0]["response"]["usage"], nullptr);
  EXPECT_EQ(events[0]["response"]["temperature"], 0.5);
}

TEST(ResponseWriters, AWholeAnswerIsWhatAStreamEndsWith) {
  const TextRequest request = response_request(false), stream = response_request(true);
  const Json whole = make_answer_writer(kResponse, request)->whole({joined()}, kUsage);
  EXPECT_EQ(whole, streamed(kResponse, stream, pieces()).back()["response"]);
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["output"][1]["call_id"], "call_1");
  EXPECT_EQ(whole["usage"]["total_tokens"], 12);
}

TEST(ResponseWriters, WhatIsCutIsIncompleteAndWhatFailsIsFailed) {
  const TextRequest request = response_request(true);
  const Json cut = streamed(kResponse, request, {text_piece("a", "length")}).back();
  EXPECT_EQ(cut["type"], "response.incomplete");
  EXPECT_EQ(cut["response"]["incomplete_details"]["reason"], "max_output_tokens");
  const Json failed = streamed(kResponse, request, {text_piece("a")}, "no luck").back();
  EXPECT_EQ(failed["type"], "response.failed");
  EXPECT_EQ(failed["response"]["error"]["message"], "no luck");
}

TEST(MessageWriters, BlocksOpenAndCloseOneAfterTheOther) {
  const TextRequest request;
  const std::vector<Json> events = streamed(kMessage, request, pieces());
  EXPECT_THAT(types_of(events),
              ElementsAre("message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_delta", "content_block_delta",
                          "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], 5);
  EXPECT_EQ(events[3]["delta"], (Json{{"type", "text_delta"}, {"text", "Let me "}}));
  EXPECT_EQ(events[6]["content_block"]["name"], "f");
  EXPECT_EQ(events[7]["index"], 1);
  EXPECT_EQ(events[8]["delta"], (Json{{"type", "input_json_delta"}, {"partial_json", ":1}"}}));
  EXPECT_EQ(events[10]["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(events[10]["usage"]["output_tokens"], 7);
}

TEST(MessageWriters, AWholeAnswerHasBlocksAndTheReasonOfItsEnd) {
  const TextRequest request;
  const Json whole = make_answer_writer(kMessage, request)->whole({joined()}, kUsage);
  EXPECT_EQ(whole["content"][1]["input"], (Json{{"a", 1}}));
  EXPECT_EQ(whole["usage"]["input_tokens"], 3);  // tokens from a cache are counted separately
  EXPECT_EQ(whole["usage"]["cache_read_input_tokens"], 2);
  const auto reason = [&](AnswerPiece piece) {
    return make_answer_writer(kMessage, request)->whole({std::move(piece)}, kUsage)["stop_reason"];
  };
  EXPECT_EQ(reason(text_piece("a", "stop")), "end_turn");
  EXPECT_EQ(reason(text_piece("a", "length")), "max_tokens");
  AnswerPiece stopped = text_piece("a", "stop");
  stopped.stop = "END";
  EXPECT_EQ(reason(stopped), "stop_sequence");
}

TEST(Writers, WordsBehindACallAreABlockOrAnItemOfTheirOwn) {
  const std::vector<AnswerPiece> all = {call_piece({0, "call_1", "f", "{}"}), text_piece("done"),
                                        text_piece("", "tool_calls")};
  EXPECT_THAT(
      types_of(streamed(kMessage, {}, all)),
      ElementsAre("message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop",
                  "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"));
  const TextRequest request = response_request(true);
  const Json output = streamed(kResponse, request, all).back()["response"]["output"];
  ASSERT_EQ(output.size(), 2u);
  EXPECT_EQ(output[0]["arguments"], "{}");
  EXPECT_EQ(output[1]["content"][0]["text"], "done");
}

TEST(MessageWriters, AFailureAmidAStreamIsAnEvent) {
  const TextRequest request;
  const Json last = streamed(kMessage, request, {text_piece("a")}, "no luck").back();
  EXPECT_EQ(last["type"], "error");
  EXPECT_EQ(last["error"], (Json{{"type", "api_error"}, {"message", "no luck"}}));
}

TEST(ChatWriters, OnlyTheFirstPartOfACallNamesIt) {
  TextRequest request;
  request.api = TextApi::chat;
  const std::vector<Json> events = streamed({TextApi::chat, "chatcmpl-k", "k", "m", 7}, request, pieces());
  const Json first = events[2]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(first["id"], "call_1");
  EXPECT_EQ(first["function"]["name"], "f");
  EXPECT_EQ(events[3]["choices"][0]["delta"]["tool_calls"][0],
            (Json{{"index", 0}, {"function", {{"arguments", ":1}"}}}}));
  EXPECT_EQ(events.back(), "[DONE]");
}

// What a call pushed byte by byte gives: name, arguments, parts.
struct Pushed {
  std::string name, arguments;
  int parts = 0;
  bool complete = false;
};

Pushed pushed(const ToolUse& use, const std::string& text) {
  GrowingCall call(use, "call_1");
  Pushed out;
  for (const char c : text)
    if (const std::optional<ToolCall> part = call.push({&c, 1})) {
      EXPECT_EQ(part->begins(), out.parts == 0);
      out.name += part->name;
      out.arguments += part->arguments;
      ++out.parts;
    }
  out.complete = call.complete();
  return out;
}

TEST(ForcedCalls, StreamTheArgumentsOfTheToolThatIsNamedFirst) {
  const Pushed any =
      pushed({ToolUse::Mode::required, ""}, R"({ "name": "a\"}b", "arguments": { "x": "}\"{", "y": [ {} ] } })");
  EXPECT_EQ(any.name, "a\"}b");
  EXPECT_EQ(any.arguments, R"({ "x": "}\"{", "y": [ {} ] })");
  EXPECT_GT(any.parts, 10);
  EXPECT_TRUE(any.complete);
}

TEST(ForcedCalls, ANamedToolsTextIsItsArguments) {
  const Pushed named = pushed({ToolUse::Mode::named, "f"}, R"( {"city":"Oslo"} )");
  EXPECT_EQ(named.name, "f");
  EXPECT_EQ(named.arguments, R"({"city":"Oslo"})");
  EXPECT_TRUE(named.complete);
}

TEST(ForcedCalls, WhatIsCutIsNotComplete) {
  const Pushed cut = pushed({ToolUse::Mode::required, ""}, R"({"name":"f","arguments":{"city":"Os)");
  EXPECT_EQ(cut.arguments, R"({"city":"Os)");
  EXPECT_FALSE(cut.complete);
  EXPECT_EQ(pushed({ToolUse::Mode::required, ""}, R"({"name":"f","arg)").parts, 0);
  EXPECT_FALSE(pushed({ToolUse::Mode::required, ""}, R"({"name":"f","arguments":{"a":{}})").complete);
}

}  // namespace
}  // namespace headroom::test
