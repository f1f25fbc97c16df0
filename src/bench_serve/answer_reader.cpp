#include "bench_serve/answer_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace headroom::bench {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostText = 4096;

bool has_text(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || at->is_null()) return false;
  return at->is_string() ? !at->get_ref<const std::string&>().empty() : !at->empty();
}

// Whether a choice has something that was sampled: text, reasoning, a part of a call.
bool brings_text(const Json& choice) {
  if (has_text(choice, "text")) return true;
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) return false;
  for (const char* name : {"content", "reasoning_content", "reasoning", "tool_calls", "refusal"})
    if (has_text(*delta, name)) return true;
  return false;
}

int64_t count_of(const Json& usage, const char* name) {
  const auto at = usage.find(name);
  return at != usage.end() && at->is_number_integer() && *at >= 0 ? at->get<int64_t>() : -1;
}

// The message of {"error":{"message"}}, {"error":"..."} and the like, else the text; shortened to one line.
std::string message_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  std::string message = text;
  if (json.is_object()) {
    const auto error = json.find("error");
    const Json& holder = error != json.end() && error->is_object() ? *error : json;
    if (const auto at = holder.find("message"); at != holder.end() && at->is_string())
      message = at->get<std::string>();
    else if (error != json.end() && error->is_string())
      message = error->get<std::string>();
  }
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return message.substr(0, 300);
}

Outcome outcome_of(int status) {
  if (status == 503 || status == 429) return Outcome::refused;
  return status >= 400 && status < 500 ? Outcome::client_error : Outcome::server_error;
}

}  // namespace

AnswerReader::AnswerReader(RequestRecord& record)
    : record_(record), events_([this](std::string_view data) { event(data); }) {}

void AnswerReader::head(const AnswerHead& head) {
  record_.status = head.status;
  record_.retry_after = head.retry_after.has_value();
  record_.retry_seconds = head.retry_after.value_or(0);
  is_stream_ = head.status == 200 && head.content_type.starts_with("text/event-stream");
}

bool AnswerReader::body(std::string_view bytes, double now) {
  now_ = now;
  if (!is_stream_) {
    text_ += bytes.substr(0, kMostText - std::min(kMostText, text_.size()));
    return true;
  }
  if (!events_.read(bytes)) fail("an event is longer than 16 MiB");
  return !failed_;
}

void AnswerReader::fail(std::string message) {
  if (!failed_) record_.message = std::move(message);
  failed_ = true;
}

void AnswerReader::event(std::string_view data) {
  if (failed_) return;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const Json json = Json::parse(data, nullptr, false);
  if (!json.is_object()) return fail(fmt::format("an event is not a JSON object: {}", message_of(std::string(data))));
  if (json.contains("error") && !json["error"].is_null()) return fail(message_of(std::string(data)));
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    record_.input_tokens = std::max(record_.input_tokens, count_of(*usage, "prompt_tokens"));
    record_.output_tokens = std::max(record_.output_tokens, count_of(*usage, "completion_tokens"));
  }
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array()) return;
  bool text = false;
  for (const Json& choice : *choices) {
    if (!choice.is_object()) continue;
    text |= brings_text(choice);
    finished_ |= has_text(choice, "finish_reason");
  }
  if (!text) return;
  if (record_.pieces++ == 0)
    record_.first = now_;
  else
    record_.gaps.push_back(static_cast<float>(now_ - record_.last));
  record_.last = now_;
}

void AnswerReader::end(CallEnd end, const std::string& error, double now) {
  record_.ended = now;
  const auto set = [&](Outcome outcome, const std::string& message) {
    record_.outcome = outcome;
    if (record_.message.empty()) record_.message = message;
  };
  if (end == CallEnd::cancelled && !failed_) return set(Outcome::cancelled, "cancelled");
  if (end == CallEnd::timed_out) return set(Outcome::timed_out, error);
  if (end == CallEnd::unreachable) return set(Outcome::unreachable, error);
  if (record_.status == 0) return set(Outcome::unreachable, error);
  if (record_.status != 200) return set(outcome_of(record_.status), message_of(text_));
  if (!is_stream_) return set(Outcome::broken, "the answer is not an event stream");
  if (failed_ || (end == CallEnd::broken && !done_)) return set(Outcome::broken, error);
  if (!done_ && !finished_) return set(Outcome::broken, "the stream ended without finish_reason and [DONE]");
  record_.outcome = Outcome::completed;
}

}  // namespace headroom::bench
