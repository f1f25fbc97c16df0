// Requests as tokens: chats through the model's template, grammars compiled. What the worker thread does.
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

// Bytes that requests reserve together; may be used by several threads.
class ReservedBytes {
 public:
  explicit ReservedBytes(int64_t most) : most_(most) {}
  // Gives them back when it is destroyed; null where too few are left.
  std::shared_ptr<void> reserve(int64_t bytes);

 private:
  int64_t most_;
  std::atomic<int64_t> used_{0};
};

// What a server keeps of requests at most, beside connections. Bytes.
struct EncoderLimits {
  int64_t body_bytes = 0;       // of one request
  int64_t body_values = 0;      // JSON values in it
  int64_t queued_bytes = 0;     // prompts and texts of all requests that wait or run
  int64_t embedding_bytes = 0;  // of an answer with embeddings
  int64_t grammar_bytes = 0;    // grammars and matchers of all of them
  GrammarLimits grammar;        // of one

  static EncoderLimits of(int64_t max_model_len);
  // What encoding, waiting and running requests hold of heap, at most. `tokenizer_file`: bytes of tokenizer.json.
  int64_t memory_bytes(int64_t tokenizer_file) const;
};

// Used by one thread.
class TextEncoder {
 public:
  // `model` outlives the encoder. `chat_template`: the text of one in place of the model's; empty: none.
  TextEncoder(const ServedModel& model, const EncoderLimits& limits, const std::string& chat_template);
  ~TextEncoder();

  // Throws ApiError: 400 where the request cannot fit the context or its grammar is malformed, 503 where too many
  // wait. `held` is filled with what has to be kept until the answer's end.
  EncodedText encode(const TextRequest& request, std::shared_ptr<void>& held);
  // The prompts of embeddings. Refuses with 400 what does not fit the context, or takes more than one request may.
  std::vector<std::vector<int32_t>> encode_inputs(const EmbeddingRequest& request, std::shared_ptr<void>& held);
  // The ids of a text, and of a chat. Throws ApiError(400).
  std::vector<int32_t> tokens_of(const std::string& text, bool add_special_tokens) const;
  // `prefill`: what the assistant is to go on from, behind the template's text.
  std::vector<int32_t> chat_tokens(const OrderedJson& messages, const OrderedJson& tools, const ChatForm& form,
                                   const std::string& prefill = {}) const;
  // Whether the model has a chat template.
  bool has_chats() const { return chats_ != nullptr; }

 private:
  struct Vocabulary;
  void add_matchers(const TextRequest& request, EncodedText& out, std::vector<std::shared_ptr<void>>& held);
  void fit(const TextRequest& request, EncodedText& out) const;
  // The tokens of the longest prompt. An empty one becomes BOS; `name` is the field in errors.
  int64_t check_prompts(std::vector<std::vector<int32_t>>& prompts, const char* name) const;

  const ServedModel& model_;
  EncoderLimits limits_;
  std::unique_ptr<ChatRenderer> chats_;     // null: the model has no template
  std::unique_ptr<Vocabulary> vocabulary_;  // made for the first grammar
  ReservedBytes queued_, grammars_;
  std::vector<int32_t> stop_ids_;
};

}  // namespace headroom
