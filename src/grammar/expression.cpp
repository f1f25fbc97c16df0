#include "grammar/expression.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

// The characters that are always escaped in a JSON string.
CodePointSet escaped_characters() {
  CodePointSet set(0, 0x1F);
  set.add('"');
  set.add('\\');
  return set;
}

std::string json_escape(char32_t code) {
  static constexpr std::pair<char32_t, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                         {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
  for (const auto& entry : kShort)
    if (entry.first == code) return {'\\', entry.second};
  return fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
}

}  // namespace

ExpressionPointer characters_expression(CodePointSet set) {
  auto out = std::make_unique<Expression>();
  out->kind = Expression::Kind::characters;
  out->characters = std::move(set);
  return out;
}

ExpressionPointer joined_expression(Expression::Kind kind, std::vector<ExpressionPointer> children) {
  if (children.size() == 1) return std::move(children.front());
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->children = std::move(children);
  return out;
}

ExpressionPointer repeat_expression(ExpressionPointer child, int64_t least, int64_t most) {
  auto out = std::make_unique<Expression>();
  out->kind = Expression::Kind::repeat;
  out->children.push_back(std::move(child));
  out->least = least;
  out->most = most;
  return out;
}

GrammarStateId json_characters(AutomatonBuilder& builder, const CodePointSet& set, GrammarStateId next) {
  static constexpr char32_t kEscaped[] = {'"', '\\'};
  std::vector<GrammarStateId> alternatives;
  const CodePointSet plain = set.without(escaped_characters());
  if (!plain.empty()) alternatives.push_back(builder.code_points(plain, next));
  std::vector<std::string> escapes;
  for (char32_t code = 0; code < 0x20; ++code)
    if (set.has(code)) escapes.push_back(json_escape(code));
  for (const char32_t code : kEscaped)
    if (set.has(code)) escapes.push_back(json_escape(code));
  std::sort(escapes.begin(), escapes.end());
  if (!escapes.empty()) alternatives.push_back(builder.one_of(escapes, next));
  return builder.any_of(alternatives);
}

std::string json_spelling(std::string_view utf8) {
  std::string out;
  for (size_t at = 0; at < utf8.size();) {
    const Utf8Char next = decode_utf8(utf8, at);
    if (next.code < 0x20 || next.code == '"' || next.code == '\\')
      out += json_escape(next.code);
    else
      out += utf8.substr(at, next.bytes);
    at += next.bytes;
  }
  return out;
}

GrammarStateId ExpressionStates::characters(const CodePointSet& set, GrammarStateId next) {
  const auto states = [&](GrammarStateId then) {
    return spelling_ == CharacterSpelling::json ? json_characters(builder_, set, then)
                                                : builder_.code_points(set, then);
  };
  const bool one_byte =
      set.is_ascii() && (spelling_ == CharacterSpelling::plain || set.without(escaped_characters()) == set);
  if (set.empty() || one_byte) return states(next);
  const auto found = rules_.find(set);
  if (found != rules_.end()) return builder_.call(found->second, next);
  const GrammarRuleId rule = builder_.declare(builder_.place());
  builder_.define(rule, states(AutomatonBuilder::end()));
  rules_.emplace(set, rule);
  return builder_.call(rule, next);
}

GrammarStateId ExpressionStates::repeat(const Expression& expression, GrammarStateId next) {
  const Expression& child = *expression.children.front();
  GrammarStateId state = next;
  if (expression.most == Expression::kUnbounded) {
    state = builder_.open_loop();
    builder_.close_loop(state, of(child, state), next);
  } else {
    for (int64_t n = expression.least; n < expression.most; ++n) state = builder_.either(of(child, state), next);
  }
  for (int64_t n = 0; n < expression.least; ++n) state = of(child, state);
  return state;
}

GrammarStateId ExpressionStates::of(const Expression& expression, GrammarStateId next) {
  builder_.step();
  switch (expression.kind) {
    case Expression::Kind::characters:
      return characters(expression.characters, next);
    case Expression::Kind::call:
      return builder_.call(expression.rule, next);
    case Expression::Kind::repeat:
      return repeat(expression, next);
    case Expression::Kind::alternatives: {
      std::vector<GrammarStateId> alternatives;
      for (const ExpressionPointer& child : expression.children) alternatives.push_back(of(*child, next));
      return builder_.any_of(alternatives);
    }
    case Expression::Kind::sequence:
      break;
  }
  for (size_t i = expression.children.size(); i > 0; --i) next = of(*expression.children[i - 1], next);
  return next;
}

}  // namespace headroom
