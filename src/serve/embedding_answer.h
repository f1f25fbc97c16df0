// Embeddings under way: inputs go to the scheduler some at a time, and what they give is sent at once in the end.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "serve/embedding_request.h"
#include "serve/http_exchange.h"

namespace headroom {

// A prompt's hidden state as an embedding: its first `dimensions` numbers, of length one. Throws Error(run) where it is
// not finite.
std::vector<float> embedding_of(std::span<const float> state, int64_t dimensions);
// The JSON of an embedding, a list of numbers or base64 of little-endian f32; at most embedding_text_bytes().
std::string embedding_text(std::span<const float> embedding, bool base64);
int64_t embedding_text_bytes(int64_t dimensions, bool base64);

// Made on the worker; all else happens on the thread that steps.
class EmbeddingAnswer : public std::enable_shared_from_this<EmbeddingAnswer> {
 public:
  static constexpr size_t kAtOnce = 32;  // inputs of one answer that wait or run

  // `prompts`: of the request's inputs. `held` is kept until the answer's end.
  EmbeddingAnswer(std::shared_ptr<HttpExchange> exchange, EmbeddingRequest request,
                  std::vector<std::vector<int32_t>> prompts, Pooling pooling, std::shared_ptr<void> held);
  ~EmbeddingAnswer();

  // The next inputs, for the scheduler to take all or none. Once they have ended and further ones are left `more` is
  // called, on the thread that steps, amid a step.
  std::vector<SequenceRequest> next(uint64_t client, std::function<void()> more);
  void refused(int status, const std::string& why);
  const std::shared_ptr<HttpExchange>& exchange() { return exchange_; }
  int64_t longest_prompt() const;

 private:
  class Input;

  void input_ended(SequenceEnd end, const std::string& error);
  void finish();

  std::shared_ptr<HttpExchange> exchange_;
  const EmbeddingRequest request_;
  std::vector<std::vector<int32_t>> prompts_;
  const Pooling pooling_;
  std::shared_ptr<void> held_;
  std::vector<float> embeddings_;  // [input, dimensions]
  std::vector<std::unique_ptr<Input>> inputs_;
  std::function<void()> more_;
  size_t given_ = 0;    // to the scheduler
  size_t running_ = 0;  // of these
  int64_t tokens_ = 0;
  bool cancelled_ = false;
  std::string error_;
};

}  // namespace headroom
