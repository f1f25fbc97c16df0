// Whether a grammar accepts a text, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/configurations.h"
#include "grammar/grammar.h"

namespace headroom {

inline Grammar grammar_of(GrammarSource::Kind kind, const std::string& text, const GrammarLimits& limits = {}) {
  GrammarSource source;
  source.kind = kind;
  source.name = "source";
  source.text = text;
  return compile_grammar(source, limits);
}

inline Grammar schema(const std::string& text, const GrammarLimits& limits = {}) {
  return grammar_of(GrammarSource::Kind::json_schema, text, limits);
}
inline Grammar regex(const std::string& text, const GrammarLimits& limits = {}) {
  return grammar_of(GrammarSource::Kind::regular_expression, text, limits);
}
inline Grammar ebnf(const std::string& text, const GrammarLimits& limits = {}) {
  return grammar_of(GrammarSource::Kind::ebnf, text, limits);
}

enum class TextState { no, begins, whole };

// Whether the grammar accepts a text, a text that starts with it, or neither.
inline TextState state_of(const Grammar& grammar, std::string_view text) {
  GrammarLimits small;  // tables of a size that is computed quickly
  small.table_bytes = 512 << 10;
  small.threads = 512;
  Configurations configurations(grammar.automaton, small);
  ConfigurationId at = configurations.start();
  for (const char byte : text) {
    if (at == Configurations::kDead) return TextState::no;
    at = configurations.step(at, static_cast<uint8_t>(byte));
  }
  if (at == Configurations::kDead) return TextState::no;
  return configurations.ends(at) ? TextState::whole : TextState::begins;
}

inline bool has(const Grammar& grammar, std::string_view text) { return state_of(grammar, text) == TextState::whole; }

inline void expect_texts(const Grammar& grammar, const std::vector<std::string>& texts,
                         const std::vector<std::string>& others) {
  for (const std::string& text : texts) EXPECT_TRUE(has(grammar, text)) << text;
  for (const std::string& text : others) EXPECT_FALSE(has(grammar, text)) << text;
}

// The message of a refusal and its remedy; empty when nothing was refused.
inline std::string refusal(const std::function<void()>& call, ErrorKind kind = ErrorKind::usage) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_FALSE(error.remedy().empty());
    return std::string(error.what());
  }
  return {};
}

}  // namespace headroom
