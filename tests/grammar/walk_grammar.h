// Used by the fuzzers: compiles a grammar under small limits, and follows tokens of its masks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/counter_random.h"
#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/grammar_matcher.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

inline void walk_grammar(GrammarSource::Kind kind, const uint8_t* data, size_t size) {
  static const Tokenizer tokenizer = Tokenizer::bytes();
  static const TokenBytes tokens(tokenizer);
  static const TokenTrie trie(tokens, tokenizer.vocab_size());
  GrammarLimits limits;
  limits.states = 4096;
  limits.rules = 256;
  limits.compile_steps = 50000;
  limits.threads = 512;
  limits.table_bytes = 256 << 10;
  limits.mask_steps = 200000;
  GrammarSource source;
  source.kind = kind;
  source.name = "fuzz";
  source.text.assign(reinterpret_cast<const char*>(data), size);
  try {
    const Grammar grammar = compile_grammar(source, limits);
    const int32_t end = tokenizer.eos_id().value();
    GrammarMatcher matcher(grammar.automaton, trie, tokens, {end}, limits);
    for (uint64_t n = 0; n < 24 && !matcher.must_end(); ++n) {
      const TokenMask& mask = matcher.allowed();
      if (mask.allows(end) != matcher.may_end()) __builtin_trap();
      std::vector<int32_t> ids;
      for (int32_t id = 0; id < mask.vocab(); ++id)
        if (mask.allows(id) && id != end) ids.push_back(id);
      if (ids.empty()) break;
      matcher.accept(ids[mix64(n * 31 + size) % ids.size()]);
    }
  } catch (const Error&) {
  }
}

}  // namespace headroom
