#include "serve/response_writer.h"

#include <fmt/format.h>

#include <utility>

namespace headroom {

void ResponseWriter::event(std::string_view type, Json fields) {
  if (!request_.stream) return;
  fields["type"] = type;
  fields["sequence_number"] = sequence_++;
  events_ += typed_event_text(fields);
}

Json ResponseWriter::place() const {
  return {{"item_id", fmt::format("{}_{}{}", open_ == Open::call ? "fc" : "msg", head_.key, output_.size())},
          {"output_index", output_.size()}};
}

Json ResponseWriter::part() const {
  return {{"type", "output_text"}, {"text", text_}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

Json ResponseWriter::item(std::string_view status) const {
  Json item{{"id", place()["item_id"]}, {"status", status}};
  if (open_ == Open::call) {
    item.update({{"type", "function_call"}, {"call_id", call_.id}, {"name", call_.name}, {"arguments", text_}});
  } else {
    item.update({{"type", "message"}, {"role", "assistant"}, {"content", Json::array()}});
    if (status != "in_progress") item["content"].push_back(part());
  }
  return item;
}

void ResponseWriter::open_message() {
  open_ = Open::message;
  text_.clear();
  event("response.output_item.added", {{"output_index", output_.size()}, {"item", item("in_progress")}});
  Json added = place();
  added["content_index"] = 0;
  added["part"] = part();
  event("response.content_part.added", std::move(added));
}

void ResponseWriter::open_call(const ToolCall& call) {
  open_ = Open::call;
  text_.clear();
  call_ = call;
  event("response.output_item.added", {{"output_index", output_.size()}, {"item", item("in_progress")}});
}

void ResponseWriter::add_text(const std::string& text) {
  text_ += text;
  Json delta = place();
  delta.update({{"content_index", 0}, {"delta", text}, {"logprobs", Json::array()}});
  event("response.output_text.delta", std::move(delta));
}

void ResponseWriter::add_arguments(const std::string& arguments) {
  text_ += arguments;
  Json delta = place();
  delta["delta"] = arguments;
  event("response.function_call_arguments.delta", std::move(delta));
}

void ResponseWriter::finish_message(const Json& place) {
  Json done = place;
  done.update({{"content_index", 0}, {"text", text_}, {"logprobs", Json::array()}});
  event("response.output_text.done", std::move(done));
  done = place;
  done.update({{"content_index", 0}, {"part", part()}});
  event("response.content_part.done", std::move(done));
}

void ResponseWriter::finish_call(const Json& place) {
  Json done = place;
  done.update({{"name", call_.name}, {"arguments", text_}});
  event("response.function_call_arguments.done", std::move(done));
}

void ResponseWriter::close(std::string_view status) {
  if (open_ == Open::nothing) return;
  open_ == Open::call ? finish_call(place()) : finish_message(place());
  Json ended = item(status);
  event("response.output_item.done", {{"output_index", output_.size()}, {"item", ended}});
  output_.push_back(std::move(ended));
  open_ = Open::nothing;
}

Json ResponseWriter::response(std::string_view status, const AnswerUsage* usage) const {
  Json out = Json::parse(request_.settings);
  out.update({{"id", head_.id},
              {"object", "response"},
              {"created_at", head_.created},
              {"model", head_.model},
              {"status", status},
              {"error", nullptr},
              {"incomplete_details", nullptr},
              {"output", output_},
              {"previous_response_id", nullptr},
              {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
              {"store", false},
              {"truncation", "disabled"},
              {"usage", nullptr}});
  if (status == "incomplete") out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  if (usage)
    out["usage"] = {{"input_tokens", usage->prompt_tokens},
                    {"input_tokens_details", {{"cached_tokens", usage->cached_tokens}, {"cache_write_tokens", 0}}},
                    {"output_tokens", usage->completion_tokens},
                    {"output_tokens_details", {{"reasoning_tokens", 0}}},
                    {"total_tokens", usage->prompt_tokens + usage->completion_tokens}};
  return out;
}

std::string ResponseWriter::begin(const AnswerUsage&) {
  for (const char* type : {"response.created", "response.in_progress"})
    event(type, {{"response", response("in_progress", nullptr)}});
  return std::exchange(events_, {});
}

std::string ResponseWriter::piece(const AnswerPiece& piece) {
  if (!piece.text.empty()) {
    if (open_ == Open::call) close("completed");
    if (open_ == Open::nothing) open_message();
    add_text(piece.text);
  }
  for (const ToolCall& call : piece.calls) {
    if (call.begins()) {
      close("completed");
      open_call(call);
    }
    if (!call.arguments.empty()) add_arguments(call.arguments);
  }
  if (!piece.finish.empty()) {
    if (open_ == Open::nothing && output_.empty()) open_message();
    status_ = piece.finish == "length" ? "incomplete" : "completed";
    close(status_);
  }
  return std::exchange(events_, {});
}

std::string ResponseWriter::end(const AnswerUsage& usage, const std::string& error) {
  if (!error.empty()) status_ = "failed";
  Json last = response(status_, &usage);
  if (!error.empty()) last["error"] = {{"code", "server_error"}, {"message", error}};
  event("response." + status_, {{"response", std::move(last)}});
  return std::exchange(events_, {});
}

Json ResponseWriter::whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) {
  for (const AnswerPiece& choice : choices) piece(choice);
  return response(status_, &usage);
}

}  // namespace headroom
