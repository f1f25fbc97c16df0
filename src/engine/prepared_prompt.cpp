#include "engine/prepared_prompt.h"

#include <algorithm>

#include "base/process_memory.h"
#include "engine/process_bytes.h"
#include "planner/search.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

int64_t text_bytes(const PromptOptions& prompt) {
  return static_cast<int64_t>(prompt.prompt.size() + prompt.system.size());
}

std::unique_ptr<GenerationGrammar> make_grammar(const GrammarSource& source, const GenerationRequest& asked,
                                                const ModelFiles& model, const Tokenizer& tokenizer) {
  return std::make_unique<GenerationGrammar>(source, tokenizer, model.spec.vocab,
                                             stop_ids(asked.stops, tokenizer, model));
}

int64_t making_bytes(const GrammarSource& source, const ModelFiles& model) {
  return GenerationGrammar::making_bound(source, tokenizer_file_bytes(model.tokenizer));
}

void encode(const PromptOptions& prompt, const std::string& text, const ModelFiles& model, PreparedPrompt& out) {
  out.ids = prompt_ids(prompt, text, *out.tokenizer, model);
  out.tokens = static_cast<int64_t>(out.ids->size());
}

}  // namespace

PreparedPrompt prepare_prompt(const GenerationRequest& asked, const ModelFiles& model, PlanRequest& request) {
  const PromptOptions& prompt = asked.prompt;
  PreparedPrompt out;
  check_prompt(prompt, model);
  const int64_t bytes = text_bytes(prompt), room = model.spec.max_positions - asked.max_new_tokens.value_or(1);
  out.tokens = std::max<int64_t>(1, std::min(bytes + 1, room));
  const std::optional<GrammarSource> grammar = grammar_source(asked.grammar);
  book_prompt(request, model, bytes, rendering_bytes(prompt));
  if (grammar) book_making(request, making_bytes(*grammar, model));
  if (!prepare_fits(request)) return out;
  out.tokenizer = Tokenizer::load(model.tokenizer);
  if (grammar) {
    out.grammar = make_grammar(*grammar, asked, model, *out.tokenizer);
    book_grammar(request, *out.grammar);
  }
  const std::string text = prompt_text(prompt, *out.tokenizer, model);
  book_encoding(request, *out.tokenizer, static_cast<int64_t>(text.size()));
  if (!prepare_fits(request)) return out;
  encode(prompt, text, model, out);
  release_what_is_behind();  // the memory of loading and encoding
  return out;
}

PreparedPrompt prepare_prompt_beside(const GenerationRequest& asked, const ModelFiles& model,
                                     const Tokenizer& tokenizer, int64_t spare) {
  const PromptOptions& prompt = asked.prompt;
  PreparedPrompt out;
  check_prompt(prompt, model);
  const std::optional<GrammarSource> grammar = grammar_source(asked.grammar);
  int64_t taken = prompt_bytes(model, text_bytes(prompt), rendering_bytes(prompt));
  if (grammar) taken += making_bytes(*grammar, model);
  if (taken > spare) return out;
  out.tokenizer = tokenizer;
  if (grammar) {
    out.grammar = make_grammar(*grammar, asked, model, tokenizer);
    taken += out.grammar->memory_bytes();
  }
  const std::string text = prompt_text(prompt, tokenizer, model);
  taken += encoding_bytes(tokenizer, static_cast<int64_t>(text.size()));
  if (taken <= spare) encode(prompt, text, model, out);
  return out;
}

}  // namespace headroom
