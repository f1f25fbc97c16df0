// A grammar over bytes.
#pragma once

#include <string>

#include "grammar/grammar.h"
#include "grammar/grammar_matcher.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// Tokens are the bytes and two more, of which 257 ends the text; only the first `vocab` of them.
class ByteGrammar {
 public:
  explicit ByteGrammar(const std::string& expression, int64_t vocab = 258)
      : grammar_(compile_grammar({GrammarSource::Kind::regular_expression, "test", expression, {}})),
        tokens_(Tokenizer::bytes()),
        trie_(tokens_, vocab),
        matcher_(grammar_.automaton, trie_, tokens_, vocab > 257 ? std::vector<int32_t>{257} : std::vector<int32_t>{},
                 {}) {}
  GrammarMatcher& matcher() { return matcher_; }

 private:
  Grammar grammar_;
  TokenBytes tokens_;
  TokenTrie trie_;
  GrammarMatcher matcher_;
};

}  // namespace headroom
