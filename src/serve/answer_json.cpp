#include "serve/answer_json.h"

#include <algorithm>

#include "serve/api_error.h"

namespace headroom {
namespace {

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

// Clamps a log-probability to what JSON can represent.
double finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

Json completion_logprobs(const std::vector<TokenText>& tokens, int64_t offset) {
  Json out{{"tokens", Json::array()},
           {"token_logprobs", Json::array()},
           {"top_logprobs", Json::array()},
           {"text_offset", Json::array()}};
  for (const TokenText& token : tokens) {
    out["tokens"].push_back(token.text);
    out["token_logprobs"].push_back(token.logprob ? Json(finite(*token.logprob)) : Json());
    Json top = Json::object();
    for (const auto& [text, logprob] : token.best)
      if (!top.contains(text)) top[text] = finite(logprob);
    if (token.logprob && !top.contains(token.text)) top[token.text] = finite(*token.logprob);
    out["top_logprobs"].push_back(token.logprob ? std::move(top) : Json());
    out["text_offset"].push_back(offset);
    offset += character_count(token.text);
  }
  return out;
}

Json chat_logprobs(const std::vector<TokenText>& tokens, int64_t best) {
  Json content = Json::array();
  for (const TokenText& token : tokens) {
    Json top = Json::array();
    for (size_t i = 0; i < token.best.size() && static_cast<int64_t>(i) < best; ++i)
      top.push_back({{"token", token.best[i].first},
                     {"logprob", finite(token.best[i].second)},
                     {"bytes", bytes_of(token.best[i].first)}});
    content.push_back({{"token", token.text},
                       {"logprob", finite(token.logprob.value_or(0))},
                       {"bytes", bytes_of(token.text)},
                       {"top_logprobs", std::move(top)}});
  }
  return {{"content", std::move(content)}};
}

Json logprobs_json(const TextRequest& request, const AnswerPiece& piece, int64_t offset) {
  if (request.best < 0) return nullptr;
  return request.api == TextApi::chat ? chat_logprobs(piece.tokens, request.best)
                                      : completion_logprobs(piece.tokens, offset);
}

Json finish_json(const AnswerPiece& piece) { return piece.finish.empty() ? Json() : Json(piece.finish); }

void add_ids(const TextRequest& request, const AnswerPiece& piece, Json& choice) {
  if (!request.return_ids) return;
  Json ids = Json::array();
  for (const TokenText& token : piece.tokens) ids.push_back(token.id);
  choice["token_ids"] = std::move(ids);
}

Json calls_json(const std::vector<ToolCall>& calls, bool streamed) {
  Json out = Json::array();
  for (const ToolCall& call : calls) {
    Json function{{"arguments", call.arguments}};
    Json json = Json::object();
    if (call.begins()) {
      function["name"] = call.name;
      json = {{"id", call.id}, {"type", "function"}};
    }
    json["function"] = std::move(function);
    if (streamed) json["index"] = call.index;
    out.push_back(std::move(json));
  }
  return out;
}

Json head_json(const AnswerHead& head, bool streamed) {
  const char* object = head.api == TextApi::completion ? "text_completion"
                       : streamed                      ? "chat.completion.chunk"
                                                       : "chat.completion";
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", "headroom-" HEADROOM_VERSION}};
}

Json message_json(const AnswerPiece& piece) {
  Json message{{"role", "assistant"}, {"content", piece.text}};
  if (piece.calls.empty()) return message;
  if (piece.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = calls_json(piece.calls, false);
  return message;
}

Json usage_json(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json delta_json(const AnswerPiece& piece) {
  Json delta = Json::object();
  if (piece.begins) delta["role"] = "assistant";
  if (!piece.calls.empty()) delta["tool_calls"] = calls_json(piece.calls, true);
  if (piece.begins || !piece.text.empty()) delta["content"] = piece.text;
  return delta;
}

}  // namespace

int64_t character_count(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

Json whole_answer(const AnswerHead& head, const TextRequest& request, const std::vector<AnswerPiece>& choices) {
  Json answer = head_json(head, false);
  answer["choices"] = Json::array();
  for (const AnswerPiece& piece : choices) {
    Json choice{
        {"index", piece.index}, {"logprobs", logprobs_json(request, piece, 0)}, {"finish_reason", finish_json(piece)}};
    if (head.api == TextApi::chat)
      choice["message"] = message_json(piece);
    else
      choice["text"] = piece.text;
    add_ids(request, piece, choice);
    answer["choices"].push_back(std::move(choice));
  }
  return answer;
}

Json streamed_piece(const AnswerHead& head, const TextRequest& request, const AnswerPiece& piece, int64_t text_offset) {
  Json choice{{"index", piece.index},
              {"logprobs", piece.tokens.empty() ? Json() : logprobs_json(request, piece, text_offset)},
              {"finish_reason", finish_json(piece)}};
  if (head.api == TextApi::chat)
    choice["delta"] = delta_json(piece);
  else
    choice["text"] = piece.text;
  add_ids(request, piece, choice);
  Json event = head_json(head, true);
  event["choices"] = Json::array({std::move(choice)});
  return event;
}

Json streamed_usage(const AnswerHead& head, const AnswerUsage& usage) {
  Json event = head_json(head, true);
  event["choices"] = Json::array();
  event["usage"] = usage_json(usage);
  return event;
}

std::string ChoicesWriter::piece(const AnswerPiece& piece) {
  int64_t& characters = characters_[piece.index];
  Json event = streamed_piece(head_, request_, piece, characters);
  if (request_.include_usage) event["usage"] = nullptr;
  for (const TokenText& token : piece.tokens) characters += character_count(token.text);
  return event_text(event);
}

std::string ChoicesWriter::end(const AnswerUsage& usage, const std::string& error) {
  std::string events;
  if (!error.empty()) events = "data: " + ApiError(500, error).body() + "\n\n";
  if (request_.include_usage) events += event_text(streamed_usage(head_, usage));
  return events + "data: [DONE]\n\n";
}

Json ChoicesWriter::whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) {
  Json answer = whole_answer(head_, request_, choices);
  answer["usage"] = usage_json(usage);
  return answer;
}

}  // namespace headroom
