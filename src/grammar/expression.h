// The common part of regular expressions and EBNF: characters, sequences, alternatives, repetitions, calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automaton_builder.h"

namespace headroom {

struct Expression {
  enum class Kind : uint8_t { characters, sequence, alternatives, repeat, call };
  static constexpr int64_t kUnbounded = -1;

  Kind kind = Kind::sequence;  // without children: the empty text
  std::vector<std::unique_ptr<Expression>> children;
  CodePointSet characters;
  int64_t least = 0, most = 0;  // repeat
  GrammarRuleId rule = 0;       // call
};

using ExpressionPointer = std::unique_ptr<Expression>;

ExpressionPointer characters_expression(CodePointSet set);
// A sequence, or alternatives; a single element is returned unchanged.
ExpressionPointer joined_expression(Expression::Kind kind, std::vector<ExpressionPointer> children);
ExpressionPointer repeat_expression(ExpressionPointer child, int64_t least, int64_t most);

// How characters are spelled: in plain UTF-8, or as in a JSON string: quote and backslash after a backslash, control
// characters as escapes, all others unchanged.
enum class CharacterSpelling : uint8_t { plain, json };

// Makes states of expressions. Sets of many bytes become rules, so repeating them is cheap.
class ExpressionStates {
 public:
  ExpressionStates(AutomatonBuilder& builder, CharacterSpelling spelling) : builder_(builder), spelling_(spelling) {}
  GrammarStateId of(const Expression& expression, GrammarStateId next);

 private:
  GrammarStateId characters(const CodePointSet& set, GrammarStateId next);
  GrammarStateId repeat(const Expression& expression, GrammarStateId next);

  AutomatonBuilder& builder_;
  CharacterSpelling spelling_;
  std::map<CodePointSet, GrammarRuleId> rules_;
};

// A state that reads one character as spelled in a JSON string.
GrammarStateId json_characters(AutomatonBuilder& builder, const CodePointSet& set, GrammarStateId next);

// A text as JSON string, without its quotes.
std::string json_spelling(std::string_view utf8);

}  // namespace headroom
