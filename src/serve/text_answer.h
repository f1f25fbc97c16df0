// An answer under way: its choices as they grow, sent whole at the end or piece by piece.
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

// What the worker makes of a request: its prompts in tokens, a grammar's matcher for each choice.
struct EncodedText {
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes;                        // of each prompt, where its text comes first
  std::vector<std::shared_ptr<GrammarMatcher>> matchers;  // of each choice, or none
  std::vector<int32_t> stop_ids;
  int64_t max_tokens = 0;  // of each choice
};

// Made on the worker; all else happens on the thread that steps.
class TextAnswer : public std::enable_shared_from_this<TextAnswer> {
 public:
  // `tokenizer` and `metrics` outlive the answer. `held` is kept until the answer's end: what was reserved for it.
  TextAnswer(std::shared_ptr<HttpExchange> exchange, AnswerHead head, TextRequest request, EncodedText encoded,
             const Tokenizer& tokenizer, ServerMetrics& metrics, std::shared_ptr<void> held);
  ~TextAnswer();

  // What the scheduler takes, all or nothing.
  std::vector<SequenceRequest> sequences(uint64_t client);
  // The scheduler took them: a stream begins.
  void admitted(std::vector<SequenceId> ids);
  // It did not, or the server ends: refused before anything was sent.
  void refused(int status, const std::string& why);
  // To be cancelled when the client has gone; none before admitted().
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
  const std::string call_id_;  // what the ids of its calls begin with
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
  std::string last_events_;  // of a stream: what its last choice ends with
  std::string error_;        // of the first choice that failed
  bool bad_grammar_ = false;
};

}  // namespace headroom
