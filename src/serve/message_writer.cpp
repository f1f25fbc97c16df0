#include "serve/message_writer.h"

#include "serve/api_error.h"

namespace headroom {
namespace {

// Anthropic counts tokens read from a cache separately.
Json message_usage(const AnswerUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"output_tokens", usage.completion_tokens}};
}

// The arguments of a call; left out if max_tokens cut them, because they are not valid JSON.
Json input_of(const ToolCall& call) {
  Json input = Json::parse(call.arguments, nullptr, false);
  return input.is_object() ? input : Json::object();
}

}  // namespace

Json MessageWriter::message(const AnswerUsage& usage) const {
  return {
      {"id", head_.id},           {"type", "message"},      {"role", "assistant"},    {"model", head_.model},
      {"content", Json::array()}, {"stop_reason", reason_}, {"stop_sequence", stop_}, {"usage", message_usage(usage)}};
}

std::string MessageWriter::begin(const AnswerUsage& usage) {
  return typed_event_text({{"type", "message_start"}, {"message", message(usage)}}) +
         typed_event_text({{"type", "ping"}});
}

std::string MessageWriter::open(Json block) {
  std::string events = close();
  open_ = true;
  text_ = block["type"] == "text";
  return events +
         typed_event_text({{"type", "content_block_start"}, {"index", blocks_++}, {"content_block", std::move(block)}});
}

std::string MessageWriter::delta(Json change) const {
  return typed_event_text({{"type", "content_block_delta"}, {"index", blocks_ - 1}, {"delta", std::move(change)}});
}

std::string MessageWriter::close() {
  if (!std::exchange(open_, false)) return {};
  return typed_event_text({{"type", "content_block_stop"}, {"index", blocks_ - 1}});
}

void MessageWriter::note_end(const AnswerPiece& piece) {
  called_ |= !piece.calls.empty();
  if (piece.finish.empty()) return;
  const bool cut = piece.finish == "length";
  reason_ = cut ? "max_tokens" : called_ ? "tool_use" : piece.stop.empty() ? "end_turn" : "stop_sequence";
  if (reason_ == "stop_sequence") stop_ = piece.stop;
}

std::string MessageWriter::piece(const AnswerPiece& piece) {
  std::string events;
  if (!piece.text.empty()) {
    if (!open_ || !text_) events += open({{"type", "text"}, {"text", ""}});
    events += delta({{"type", "text_delta"}, {"text", piece.text}});
  }
  for (const ToolCall& call : piece.calls) {
    if (call.begins())
      events += open({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
    if (!call.arguments.empty()) events += delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  }
  note_end(piece);
  if (!piece.finish.empty()) events += close();
  return events;
}

std::string MessageWriter::end(const AnswerUsage& usage, const std::string& error) {
  if (!error.empty()) return "event: error\ndata: " + ApiError(500, error).message_body() + "\n\n";
  return typed_event_text({{"type", "message_delta"},
                           {"delta", {{"stop_reason", reason_}, {"stop_sequence", stop_}}},
                           {"usage", message_usage(usage)}}) +
         typed_event_text({{"type", "message_stop"}});
}

Json MessageWriter::whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) {
  Json content = Json::array();
  for (const AnswerPiece& piece : choices) {
    if (!piece.text.empty()) content.push_back({{"type", "text"}, {"text", piece.text}});
    for (const ToolCall& call : piece.calls)
      content.push_back({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
    note_end(piece);
  }
  Json answer = message(usage);
  answer["content"] = std::move(content);
  return answer;
}

}  // namespace headroom
