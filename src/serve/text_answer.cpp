#include "serve/text_answer.h"

#include <fmt/format.h>

#include <random>

#include "base/counter_random.h"
#include "serve/api_error.h"
#include "serve/server_metrics.h"

namespace headroom {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// How much of the text can be sent before it is known whole. `behind_words`: other text was sent before it.
size_t certain_text(const TextRequest& request, std::string_view text, bool behind_words) {
  if (request.tool_use.forced()) return 0;
  return request.tool_use.mode == ToolUse::Mode::automatic ? possible_call(text, behind_words) : text.size();
}

}  // namespace

class TextAnswer::Choice final : public SequenceListener {
 public:
  Choice(TextAnswer& answer, int64_t index, std::span<const int32_t> prompt)
      : answer_(answer),
        index_(index),
        text_(answer.tokenizer_, prompt, answer.request_.stops, answer.request_.keeps_special) {}

  void on_prompt(std::vector<SequenceToken> tokens) override {
    prompt_ = describe_prompt(answer_.tokenizer_, tokens);
    answer_.begin_choice(*this);
  }

  bool on_token(const SequenceToken& token) override {
    answer_.begin_choice(*this);
    std::vector<TokenText> tokens(1);
    std::string text = text_.add(token, tokens[0]);
    answer_.metrics_.token(*this_times_);
    answer_.grow(*this, std::move(text), std::move(tokens));
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
  std::vector<TokenText> prompt_;
  AnswerPiece piece_;        // of a whole answer all, of a stream what is held back
  bool begun_ = false;       // something was sent, or would have been
  bool words_sent_ = false;  // of a stream: text that is not part of a call
  int64_t characters_ = 0;   // of the tokens that were sent
  std::shared_ptr<ServerMetrics::Times> this_times_ = std::make_shared<ServerMetrics::Times>();
};

TextAnswer::TextAnswer(std::shared_ptr<HttpExchange> exchange, AnswerHead head, TextRequest request,
                       EncodedText encoded, const Tokenizer& tokenizer, ServerMetrics& metrics,
                       std::shared_ptr<void> held)
    : exchange_(std::move(exchange)),
      head_(std::move(head)),
      request_(std::move(request)),
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
  if (request_.stream) exchange_->begin_events();
}

void TextAnswer::refused(int status, const std::string& why) { refuse(*exchange_, ApiError(status, why)); }

// The role of a chat's stream, the prompt's echo.
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
    send_piece(choice, std::move(piece));
}

void TextAnswer::send_piece(Choice& choice, AnswerPiece piece) {
  Json event = streamed_piece(head_, request_, piece, choice.characters_);
  if (request_.include_usage) event["usage"] = nullptr;
  for (const TokenText& token : piece.tokens) choice.characters_ += character_count(token.text);
  exchange_->event(event_text(event));
}

void TextAnswer::grow(Choice& choice, std::string text, std::vector<TokenText> tokens) {
  const bool wants_tokens = request_.best >= 0 || request_.return_ids;
  AnswerPiece& held = choice.piece_;
  held.text += text;
  if (wants_tokens) std::move(tokens.begin(), tokens.end(), std::back_inserter(held.tokens));
  if (!request_.stream || (held.text.empty() && held.tokens.empty())) return;
  const size_t ready = certain_text(request_, held.text, choice.words_sent_);
  if (ready == 0 && !held.text.empty()) return;
  AnswerPiece piece;
  piece.index = choice.index_;
  piece.text = held.text.substr(0, ready);
  piece.tokens = std::exchange(held.tokens, {});
  held.text.erase(0, ready);
  choice.words_sent_ |= !piece.text.empty();
  send_piece(choice, std::move(piece));
}

AnswerPiece TextAnswer::last_piece(Choice& choice, SequenceEnd end) {
  AnswerPiece piece = std::exchange(choice.piece_, {});
  piece.index = choice.index_;
  piece.text += choice.text_.finish();
  piece.finish = end == SequenceEnd::length && !choice.text_.stopped() ? "length" : "stop";
  const std::string id = fmt::format("call_{}{}", head_.id.substr(head_.id.find('-') + 1), choice.index_);
  if (request_.tool_use.forced()) {
    if (std::optional<ToolCall> call = forced_call(request_.tool_use, piece.text, id)) {
      piece.text.clear();
      piece.calls.push_back(std::move(*call));
      if (request_.tool_use.mode == ToolUse::Mode::required) piece.finish = "tool_calls";
    }
  } else if (request_.tool_use.mode == ToolUse::Mode::automatic) {
    std::string content;
    piece.calls = written_calls(request_.tools, piece.text, id, content);
    if (!piece.calls.empty()) piece.text = content, piece.finish = "tool_calls";
  }
  return piece;
}

void TextAnswer::end(Choice& choice, SequenceEnd end, const std::string& error) {
  ++ended_;
  metrics_.ended(*choice.this_times_, end);
  if (end == SequenceEnd::failed || end == SequenceEnd::no_token) {
    if (error_.empty()) error_ = error;
    bad_grammar_ |= end == SequenceEnd::no_token;
  }
  if (end == SequenceEnd::stop || end == SequenceEnd::length) {
    AnswerPiece piece = last_piece(choice, end);
    if (request_.stream)
      send_piece(choice, std::move(piece));
    else
      choice.piece_ = std::move(piece);
  }
  if (ended_ == choices_.size()) finish();
}

void TextAnswer::finish() {
  encoded_.matchers.clear();
  held_.reset();
  if (!request_.stream) {
    if (!error_.empty()) return refused(bad_grammar_ ? 422 : 500, error_);
    std::vector<AnswerPiece> pieces;
    for (const auto& choice : choices_) pieces.push_back(std::move(choice->piece_));
    Json answer = whole_answer(head_, request_, pieces);
    answer["usage"] = usage_.json();
    return exchange_->send(200, "application/json", answer.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (!error_.empty()) exchange_->event("data: " + ApiError(500, error_).body() + "\n\n");
  if (request_.include_usage) exchange_->event(event_text(streamed_usage(head_, usage_)));
  exchange_->event("data: [DONE]\n\n");
  exchange_->end_events();
}

}  // namespace headroom
