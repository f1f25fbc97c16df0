// Texts from a model that stays loaded from one to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/generate.h"
#include "engine/prepared_prompt.h"

namespace headroom {

// Each text has the ids that generate_text() gives, bit for bit. The model that a text was made with, on a CPU and with
// all weights in its memory, is used again for the next one if
// - the options are the same, and so are the model's files and the threads that the process may use;
// - what it is planned for holds prompt and new tokens, and reads the prompt in the chunks of a plan for it alone: sums
//   over other numbers of rows may differ in their last bits;
// - the budget holds the prompt's preparation beside the arena.
// Otherwise it is freed, and the model is planned and loaded again.
//
// Not thread-safe, but the texts may be made by different threads, one after another.
class TextGenerator {
 public:
  // What a model is planned for: one text, after which nothing is held; or many, with room for longer ones than the
  // first and a program for each length of prompt, if the budget has it. Otherwise each is planned for its own text.
  enum class Texts : uint8_t { one, many };
  explicit TextGenerator(Texts texts);
  TextGenerator(const TextGenerator&) = delete;
  TextGenerator& operator=(const TextGenerator&) = delete;
  // While a SessionShare exists, if a model is loaded (engine/session_share.h).
  ~TextGenerator();

  // GenerationEvents::planned is called only if a model is planned. An exception while a text is made, of
  // GenerationEvents::text included, frees the model. Throws Error.
  Generation generate(const InferenceOptions& options, const GenerationRequest& request,
                      const GenerationEvents& events);

  // Whether a model is loaded.
  bool loaded() const { return model_ != nullptr; }

 private:
  class Model;
  std::optional<Generation> generate_again(const InferenceOptions& options, const GenerationRequest& request,
                                           const GenerationEvents& events);
  Generation generate_first(const InferenceOptions& options, const GenerationRequest& request,
                            const GenerationEvents& events);
  Generation run(std::unique_ptr<Model> model, const GenerationRequest& request, const PreparedPrompt& prompt,
                 int64_t new_tokens, const GenerationEvents& events);

  Texts texts_;
  std::unique_ptr<Model> model_;
};

}  // namespace headroom
