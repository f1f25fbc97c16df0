// The worker's job: turns requests into tokens, rendering chats with the model's template and compiling grammars.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "data/chat_renderer.h"
#include "engine/serving.h"
#include "grammar/grammar_matcher.h"
#include "serve/embedding_request.h"
#include "serve/text_answer.h"

namespace headroom {

// Bytes reserved by all requests together; may be used by several threads.
class ReservedBytes {
 public:
  explicit ReservedBytes(int64_t most) : most_(most) {}
  // Reserves bytes, which are returned when the result is destroyed; null when too few are left.
  std::shared_ptr<void> reserve(int64_t bytes);

 private:
  int64_t most_;
  std::atomic<int64_t> used_{0};
};

// Limits on what a server keeps for requests, besides connections. In bytes.
struct EncoderLimits {
  int64_t body_bytes = 0;       // per request
  int64_t body_values = 0;      // JSON values in it
  int64_t queued_bytes = 0;     // prompts and texts of all waiting and running requests
  int64_t embedding_bytes = 0;  // per answer with embeddings
  int64_t grammar_bytes = 0;    // grammars and matchers of all requests
  GrammarLimits grammar;        // per grammar

  static EncoderLimits of(int64_t max_model_len);
  // The most heap that encoding, waiting and running requests hold. `tokenizer_file`: bytes of tokenizer.json.
  int64_t memory_bytes(int64_t tokenizer_file) const;
};

// Used by one thread.
class TextEncoder {
 public:
  // `model` must outlive the encoder. `chat_template`: replaces the model's; empty: it does not.
  TextEncoder(const ServedModel& model, const EncoderLimits& limits, const std::string& chat_template);
  ~TextEncoder();

  // Throws ApiError: 400 when the request does not fit in the context or its grammar is malformed, 503 when too many
  // requests wait. `held` is set to what must be kept until the answer ends.
  EncodedText encode(const TextRequest& request, std::shared_ptr<void>& held);
  // The prompts of embeddings. Throws ApiError(400) when they do not fit in the context, or take more than one request
  // may.
  std::vector<std::vector<int32_t>> encode_inputs(const EmbeddingRequest& request, std::shared_ptr<void>& held);
  // The token ids of a text, and of a chat. Throws ApiError(400).
  std::vector<int32_t> tokens_of(const std::string& text, bool add_special_tokens) const;
  // `prefill`: the start of the answer that the model continues, after the template's text.
  std::vector<int32_t> chat_tokens(const OrderedJson& messages, const OrderedJson& tools, const ChatForm& form,
                                   const std::string& prefill = {}) const;
  // Whether the model has a chat template.
  bool has_chats() const { return chats_ != nullptr; }

 private:
  struct Vocabulary;
  void add_matchers(const TextRequest& request, EncodedText& out, std::vector<std::shared_ptr<void>>& held);
  void fit(const TextRequest& request, EncodedText& out) const;
  // Returns the tokens of the longest prompt. An empty prompt becomes BOS; `name` is the field in errors.
  int64_t check_prompts(std::vector<std::vector<int32_t>>& prompts, const char* name) const;

  const ServedModel& model_;
  EncoderLimits limits_;
  std::unique_ptr<ChatRenderer> chats_;     // null: the model does not have a template
  std::unique_ptr<Vocabulary> vocabulary_;  // created for the first grammar
  ReservedBytes queued_, grammars_;
  std::vector<int32_t> stop_ids_;
};

}  // namespace headroom
