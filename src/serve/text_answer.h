// An answer in progress: its choices as they grow, sent whole at the end or in pieces.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "serve/answer_writer.h"
#include "serve/call_finder.h"
#include "serve/http_exchange.h"
#include "serve/text_request.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

class ServerMetrics;

// The worker's result for a request: its prompts as tokens, and a grammar's matcher for each choice.
struct EncodedText {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes;                        // text of each prompt, if the answer starts with it
  std::vector<std::shared_ptr<GrammarMatcher>> matchers;  // one per choice, or none
  std::vector<int32_t> stop_ids;
  int64_t max_tokens = 0;  // per choice
};

// Created on the worker; everything else happens on the stepping thread.
class TextAnswer : public std::enable_shared_from_this<TextAnswer> {
 public:
  // `tokenizer` and `metrics` must outlive the answer. `held` is the memory reserved for it, kept until it ends.
  TextAnswer(std::shared_ptr<HttpExchange> exchange, AnswerHead head, TextRequest request, EncodedText encoded,
             const Tokenizer& tokenizer, ServerMetrics& metrics, std::shared_ptr<void> held);
  ~TextAnswer();

  // The sequences for the scheduler, which takes all or none.
  std::vector<SequenceRequest> sequences(uint64_t client);
  // The scheduler took them: a stream begins.
  void admitted(std::vector<SequenceId> ids);
  // It did not, or the server is ending: refuses the request, before anything was sent.
  void refused(int status, const std::string& why);
  // The sequences to cancel when the client has left; empty before admitted().
  const std::vector<SequenceId>& ids() const { return ids_; }
  HttpExchange& exchange() { return *exchange_; }
  const EncodedText& encoded() const { return encoded_; }

 private:
  class Choice;

  void begin_choice(Choice& choice);
  static void hold(Choice& choice, const std::string& text);
  void grow(Choice& choice, const std::string& text, std::vector<TokenText> tokens);
  static AnswerPiece held_piece(Choice& choice);
  static std::vector<AnswerPiece> found_pieces(Choice& choice, std::vector<FoundPart> parts);
  std::vector<AnswerPiece> last_pieces(Choice& choice, SequenceEnd end) const;
  std::string events_of(const std::vector<AnswerPiece>& pieces);
  void end(Choice& choice, SequenceEnd end, const std::string& error);
  void finish();

  std::shared_ptr<HttpExchange> exchange_;
  const std::string call_id_;  // prefix of its calls' ids
  const TextRequest request_;
  const std::unique_ptr<AnswerWriter> writer_;
  EncodedText encoded_;
  const Tokenizer& tokenizer_;
  ServerMetrics& metrics_;
  std::shared_ptr<void> held_;
  std::vector<std::unique_ptr<Choice>> choices_;
  std::vector<SequenceId> ids_;
  AnswerUsage usage_;
  size_t ended_ = 0;
  std::string last_events_;  // for a stream: the events that end its last choice
  std::string error_;        // of the first choice that failed
  bool bad_grammar_ = false;
};

}  // namespace headroom
