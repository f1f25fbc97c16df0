// The grammar of a text of `generate`, and its masks over the model's vocabulary.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/grammar_options.h"
#include "grammar/grammar.h"
#include "grammar/grammar_matcher.h"
#include "grammar/token_trie.h"
#include "planner/request.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// The grammar that the options request; nothing if they request none. Throws Error(usage | format).
std::optional<GrammarSource> grammar_source(const GrammarOptions& options);

// A compiled grammar, the vocabulary's trie and the state of one text.
class GenerationGrammar {
 public:
  // `vocab`: of the model's logits. Throws Error(usage | format).
  GenerationGrammar(const GrammarSource& source, const Tokenizer& tokenizer, int64_t vocab,
                    std::vector<int32_t> stop_ids);
  GenerationGrammar(const GenerationGrammar&) = delete;
  GenerationGrammar& operator=(const GenerationGrammar&) = delete;

  GrammarMatcher& matcher() { return matcher_; }
  const std::vector<std::string>& notes() const { return grammar_.notes; }
  // A bound on its memory, including sampling.
  int64_t memory_bytes() const;

  // A bound on the heap bytes that making one holds at once.
  static int64_t making_bound(const GrammarSource& source, int64_t tokenizer_file_bytes);

 private:
  Grammar grammar_;
  TokenBytes tokens_;
  TokenTrie trie_;
  GrammarMatcher matcher_;
};

// Books the memory of making a grammar before there is an arena, and, once it is made, its actual memory.
void book_making(PlanRequest& request, int64_t bytes);
void book_grammar(PlanRequest& request, const GenerationGrammar& grammar);

}  // namespace headroom
