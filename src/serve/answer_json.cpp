#include "serve/answer_json.h"

#include <algorithm>

namespace headroom {
namespace {

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

// A logarithm that JSON can hold.
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

Json calls_json(const std::vector<ToolCall>& calls, bool numbered) {
  Json out = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    Json call{{"id", calls[i].id},
              {"type", "function"},
              {"function", {{"name", calls[i].name}, {"arguments", calls[i].arguments}}}};
    if (numbered) call["index"] = i;
    out.push_back(std::move(call));
  }
  return out;
}

Json head_json(const AnswerHead& head, bool streamed) {
  const char* object = head.api == TextApi::completion ? "text_completion"
                       : streamed                      ? "chat.completion.chunk"
                                                       : "chat.completion";
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

Json message_json(const AnswerPiece& piece) {
  Json message{{"role", "assistant"}, {"content", piece.text}};
  if (piece.calls.empty()) return message;
  if (piece.text.empty()) message["content"] = nullptr;
  message["tool_calls"] = calls_json(piece.calls, false);
  return message;
}

Json delta_json(const AnswerPiece& piece) {
  Json delta = Json::object();
  if (piece.begins) delta["role"] = "assistant";
  if (!piece.calls.empty()) delta["tool_calls"] = calls_json(piece.calls, true);
  if (piece.begins || !piece.text.empty()) delta["content"] = piece.text;
  return delta;
}

}  // namespace

Json AnswerUsage::json() const {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens}}}};
}

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
  event["usage"] = usage.json();
  return event;
}

std::string event_text(const Json& json) { return "data: " + dumped(json) + "\n\n"; }

}  // namespace headroom
