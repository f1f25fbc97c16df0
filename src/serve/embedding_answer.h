// Embeddings in progress: inputs go to the scheduler a few at a time, and all results are sent together at the end.
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

// Makes an embedding from a prompt's hidden state: its first `dimensions` numbers, scaled to length one. Throws
// Error(run) when it is not finite.
std::vector<float> embedding_of(std::span<const float> state, int64_t dimensions);
// The JSON of an embedding: a list of numbers, or base64 of little-endian f32; at most embedding_text_bytes().
std::string embedding_text(std::span<const float> embedding, bool base64);
int64_t embedding_text_bytes(int64_t dimensions, bool base64);

// Created on the worker; everything else happens on the stepping thread.
class EmbeddingAnswer : public std::enable_shared_from_this<EmbeddingAnswer> {
 public:
  static constexpr size_t kAtOnce = 32;  // inputs of one answer that wait or run

  // `prompts`: those of the request's inputs. `held` is kept until the answer ends.
  EmbeddingAnswer(std::shared_ptr<HttpExchange> exchange, EmbeddingRequest request,
                  std::vector<std::vector<int32_t>> prompts, Pooling pooling, std::shared_ptr<void> held);
  ~EmbeddingAnswer();

  // The next inputs, of which the scheduler takes all or none. When they have ended and others are left, `more` is
  // called on the stepping thread, during a step.
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
  size_t given_ = 0;    // inputs given to the scheduler
  size_t running_ = 0;  // of these, not ended
  int64_t tokens_ = 0;
  bool cancelled_ = false;
  std::string error_;
};

}  // namespace headroom
