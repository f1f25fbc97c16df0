#include "serve/text_answer.h"

#include <fmt/format.h>

#include <random>

#include "base/counter_random.h"
#include "serve/api_error.h"
#include "serve/json_text.h"
#include "serve/server_metrics.h"

namespace headroom {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

class TextAnswer::Choice final : public SequenceListener {
 public:
  Choice(TextAnswer& answer, int64_t index, std::span<const int32_t> prompt)
      : answer_(answer),
        index_(index),
        text_(answer.tokenizer_, prompt, answer.request_.stops, answer.request_.keeps_special) {
    const ToolUse& use = answer.request_.tool_use;
    if (use.forced()) forced_.emplace(use, call_id() + '0');
    if (use.mode == ToolUse::Mode::automatic && answer.request_.stream)
      finder_.emplace(answer.request_.tools, call_id());
  }

  std::string call_id() const { return answer_.call_id_ + std::to_string(index_); }

  void on_prompt(std::vector<SequenceToken> tokens) override {
    prompt_ = describe_prompt(answer_.tokenizer_, tokens);
    answer_.begin_choice(*this);
  }

  bool on_token(const SequenceToken& token) override {
    answer_.begin_choice(*this);
    std::vector<TokenText> tokens(1);
    const std::string text = text_.add(token, tokens[0]);
    answer_.metrics_.token(*this_times_);
    answer_.grow(*this, text, std::move(tokens));
    return !text_.stopped();
  }

  void on_end(SequenceEnd end, int64_t drawn, int64_t cached, const std::string& error) override {
    answer_.usage_.completion_tokens += drawn;
    answer_.usage_.cached_tokens += cached;
    if (end != SequenceEnd::cancelled) answer_.begin_choice(*this);
    answer_.end(*this, end, error);
  }

  TextAnswer& answer_;
  const int64_t index_;
  ChoiceText text_;
  std::optional<GrowingCall> forced_;
  std::optional<CallFinder> finder_;  // for a stream that may have calls
  std::vector<TokenText> prompt_;
  AnswerPiece piece_;   // of a whole answer everything, of a stream what is held back
  bool begun_ = false;  // something was sent, or would have been
  std::shared_ptr<ServerMetrics::Times> this_times_ = std::make_shared<ServerMetrics::Times>();
};

TextAnswer::TextAnswer(std::shared_ptr<HttpExchange> exchange, AnswerHead head, TextRequest request,
                       EncodedText encoded, const Tokenizer& tokenizer, ServerMetrics& metrics,
                       std::shared_ptr<void> held)
    : exchange_(std::move(exchange)),
      call_id_((head.api == TextApi::message ? "toolu_" : "call_") + head.key),
      request_(std::move(request)),
      writer_(make_answer_writer(head, request_)),
      encoded_(std::move(encoded)),
      tokenizer_(tokenizer),
      metrics_(metrics),
      held_(std::move(held)) {
  for (const auto& prompt : encoded_.prompts) usage_.prompt_tokens += static_cast<int64_t>(prompt.size());
}

TextAnswer::~TextAnswer() = default;

std::vector<SequenceRequest> TextAnswer::sequences(uint64_t client) {
  std::vector<SequenceRequest> out;
  const uint64_t seed = request_.seed.value_or(random_seed());
  for (size_t p = 0; p < encoded_.prompts.size(); ++p)
    for (int64_t i = 0; i < request_.n; ++i) {
      const auto index = static_cast<int64_t>(choices_.size());
      choices_.push_back(std::make_unique<Choice>(*this, index, encoded_.prompts[p]));
      SequenceRequest& sequence = out.emplace_back();
      sequence.prompt = encoded_.prompts[p];
      sequence.max_tokens = encoded_.max_tokens;
      sequence.sampling = request_.sampling;
      sequence.sampling.seed = i == 0 ? seed : mix64(seed + static_cast<uint64_t>(i));
      sequence.stop_ids = encoded_.stop_ids;
      sequence.min_tokens = request_.min_tokens;
      if (!encoded_.matchers.empty()) sequence.grammar = encoded_.matchers[static_cast<size_t>(index)];
      sequence.best = request_.best;
      sequence.prompt_logprobs = request_.echo && request_.best >= 0;
      sequence.client = client;
      sequence.listener = std::shared_ptr<SequenceListener>(shared_from_this(), choices_.back().get());
    }
  return out;
}

void TextAnswer::admitted(std::vector<SequenceId> ids) {
  ids_ = std::move(ids);
  metrics_.request(usage_.prompt_tokens);
  if (!request_.stream) return;
  exchange_->begin_events();
  exchange_->event(writer_->begin(usage_));
}

void TextAnswer::refused(int status, const std::string& why) { refuse(*exchange_, ApiError(status, why)); }

// The role for a chat's stream, and the prompt's echo.
void TextAnswer::begin_choice(Choice& choice) {
  if (std::exchange(choice.begun_, true)) return;
  AnswerPiece piece;
  piece.index = choice.index_;
  piece.begins = request_.api == TextApi::chat;
  if (request_.echo) piece.text = encoded_.echoes[static_cast<size_t>(choice.index_ / request_.n)];
  piece.tokens = choice.prompt_;
  if (!request_.stream)
    choice.piece_ = std::move(piece);
  else if (piece.begins || !piece.text.empty() || !piece.tokens.empty())
    exchange_->event(writer_->piece(piece));
}

// Holds text, or what it means if it must be a call.
void TextAnswer::hold(Choice& choice, const std::string& text) {
  AnswerPiece& held = choice.piece_;
  if (!choice.forced_) {
    held.text += text;
    return;
  }
  std::optional<ToolCall> part = choice.forced_->push(text);
  if (!part) return;
  if (part->begins() || held.calls.empty())
    held.calls.push_back(std::move(*part));
  else
    held.calls.back().arguments += part->arguments;
}

void TextAnswer::grow(Choice& choice, const std::string& text, std::vector<TokenText> tokens) {
  if (request_.best >= 0 || request_.return_ids)
    std::move(tokens.begin(), tokens.end(), std::back_inserter(choice.piece_.tokens));
  if (choice.finder_) {
    for (const AnswerPiece& piece : found_pieces(choice, choice.finder_->push(text)))
      exchange_->event(writer_->piece(piece));
    return;
  }
  hold(choice, text);
  if (!request_.stream) return;
  if (const AnswerPiece piece = held_piece(choice); !piece.empty()) exchange_->event(writer_->piece(piece));
}

AnswerPiece TextAnswer::held_piece(Choice& choice) {
  AnswerPiece piece = std::exchange(choice.piece_, {});
  piece.index = choice.index_;
  return piece;
}

// Tokens go out with the first part that comes with them or later.
std::vector<AnswerPiece> TextAnswer::found_pieces(Choice& choice, std::vector<FoundPart> parts) {
  std::vector<AnswerPiece> pieces;
  for (FoundPart& part : parts) {
    AnswerPiece& piece = pieces.emplace_back(held_piece(choice));
    piece.text = std::move(part.text);
    if (part.call) piece.calls.push_back(*std::move(part.call));
  }
  return pieces;
}

// Several only for a stream that may have calls.
std::vector<AnswerPiece> TextAnswer::last_pieces(Choice& choice, SequenceEnd end) const {
  const std::string rest = choice.text_.finish();
  std::vector<AnswerPiece> pieces;
  if (choice.finder_) {
    pieces = found_pieces(choice, choice.finder_->push(rest));
    for (AnswerPiece& piece : found_pieces(choice, choice.finder_->finish())) pieces.push_back(std::move(piece));
  } else {
    hold(choice, rest);
  }
  AnswerPiece& last = pieces.emplace_back(held_piece(choice));
  last.stop = choice.text_.stop();
  last.finish = end == SequenceEnd::length && !choice.text_.stopped() ? "length" : "stop";
  if (choice.forced_) {
    if (choice.forced_->complete() && request_.tool_use.mode == ToolUse::Mode::required) last.finish = "tool_calls";
  } else if (choice.finder_) {
    if (choice.finder_->called()) last.finish = "tool_calls";
  } else if (request_.tool_use.mode == ToolUse::Mode::automatic) {
    std::string content;
    last.calls = written_calls(request_.tools, last.text, choice.call_id(), content);
    if (!last.calls.empty()) last.text = content, last.finish = "tool_calls";
  }
  return pieces;
}

std::string TextAnswer::events_of(const std::vector<AnswerPiece>& pieces) {
  std::string events;
  for (const AnswerPiece& piece : pieces) events += writer_->piece(piece);
  return events;
}

void TextAnswer::end(Choice& choice, SequenceEnd end, const std::string& error) {
  ++ended_;
  metrics_.ended(*choice.this_times_, end);
  if (end == SequenceEnd::failed || end == SequenceEnd::no_token) {
    if (error_.empty()) error_ = error;
    bad_grammar_ |= end == SequenceEnd::no_token;
  }
  const bool last = ended_ == choices_.size();
  if (end == SequenceEnd::stop || end == SequenceEnd::length) {
    std::vector<AnswerPiece> pieces = last_pieces(choice, end);
    if (!request_.stream)
      choice.piece_ = std::move(pieces.back());
    else if (last)
      last_events_ = events_of(pieces);
    else
      exchange_->event(events_of(pieces));
  }
  if (last) finish();
}

void TextAnswer::finish() {
  encoded_.matchers.clear();
  held_.reset();
  if (request_.stream) return exchange_->end_events(last_events_ + writer_->end(usage_, error_));
  if (!error_.empty()) return refused(bad_grammar_ ? 422 : 500, error_);
  std::vector<AnswerPiece> pieces;
  for (const auto& choice : choices_) pieces.push_back(std::move(choice->piece_));
  const Json answer = writer_->whole(pieces, usage_);
  exchange_->send(200, "application/json", json_text(answer));
}

}  // namespace headroom
