// What follows a value: attributes, items, calls, filters, tests; and the targets of assignments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "jinja/expression_parser.h"
#include "jinja/filters.h"
#include "jinja/tests.h"

namespace headroom::jinja {
namespace {

std::vector<ExpressionPtr> parts_of(ExpressionPtr first) {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(first));
  return parts;
}

}  // namespace

ExpressionPtr ExpressionParser::postfix(ExpressionPtr left) {
  while (true) {
    if (tokens_.is_sign(".")) {
      left = attribute(std::move(left));
    } else if (tokens_.is_sign("[")) {
      left = subscript(std::move(left));
    } else if (tokens_.is_sign("(")) {
      const int line = tokens_.now().line;
      left = make(ExpressionKind::call, line, parts_of(std::move(left)));
      arguments(*left);
    } else {
      return left;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr left) {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> parts = parts_of(std::move(left));
  if (tokens_.is(TokenType::name)) return make(ExpressionKind::attribute, line, std::move(parts), tokens_.take().text);
  if (!tokens_.is(TokenType::number) || !tokens_.now().number.is_integer()) tokens_.fail_expecting("a name");
  ExpressionPtr index = make(ExpressionKind::constant, line);
  index->value = tokens_.take().number;
  parts.push_back(std::move(index));
  return make(ExpressionKind::item, line, std::move(parts));
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr left) {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> parts = parts_of(std::move(left));
  const auto ends = [this] { return tokens_.is_sign("]") || tokens_.is_sign(":"); };
  parts.push_back(ends() ? nullptr : expression());
  bool slice = false;
  while (tokens_.skip_sign(":")) {
    slice = true;
    if (parts.size() == 4) tokens_.fail_here("a slice of more than three parts");
    parts.push_back(ends() ? nullptr : expression());
  }
  if (tokens_.is_sign(",")) tokens_.refuse_here("a subscript of several values");
  tokens_.expect_sign("]");
  if (slice) {
    while (parts.size() < 4) parts.push_back(nullptr);
  } else if (parts[1] == nullptr) {
    tokens_.fail_here("an empty subscript");
  }
  return make(slice ? ExpressionKind::slice : ExpressionKind::item, line, std::move(parts));
}

// Parses the arguments in parentheses into the call's parts and keywords.
void ExpressionParser::arguments(Expression& call) {
  tokens_.expect_sign("(");
  for (bool first = true; !tokens_.is_sign(")"); first = false) {
    if (!first) {
      tokens_.expect_sign(",");
      if (tokens_.is_sign(")")) break;
    }
    argument(call);
  }
  tokens_.expect_sign(")");
}

void ExpressionParser::argument(Expression& call) {
  if (tokens_.is_sign("*") || tokens_.is_sign("**")) tokens_.refuse_here(tokens_.now().text + " before an argument");
  const bool named =
      tokens_.is(TokenType::name) && tokens_.ahead().type == TokenType::sign && tokens_.ahead().text == "=";
  if (named) {
    std::string name = tokens_.take().text;
    tokens_.take();
    if (std::find(call.keywords.begin(), call.keywords.end(), name) != call.keywords.end())
      tokens_.fail_here(fmt::format("the argument '{}' is given twice", name));
    call.keywords.push_back(std::move(name));
  } else if (!call.keywords.empty()) {
    tokens_.fail_here("an argument without a name after one with a name");
  }
  adopt(call, expression());
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr left) {
  while (true) {
    if (tokens_.is_sign("|")) {
      left = filter(std::move(left));
    } else if (tokens_.is_name("is")) {
      left = test(std::move(left));
    } else if (tokens_.is_sign("(")) {
      const int line = tokens_.now().line;
      left = make(ExpressionKind::call, line, parts_of(std::move(left)));
      arguments(*left);
    } else {
      return left;
    }
  }
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr left) {
  tokens_.expect_sign("|");
  if (tokens_.is(TokenType::name) && !is_filter(tokens_.now().text))
    tokens_.refuse_here("the filter " + tokens_.now().text);
  Token token = tokens_.expect(TokenType::name, "a filter");
  ExpressionPtr made = make(ExpressionKind::filter, token.line, parts_of(std::move(left)), std::move(token.text));
  if (tokens_.is_sign("(")) arguments(*made);
  return made;
}

ExpressionPtr ExpressionParser::filters_of_block() {
  ExpressionPtr made;
  while (tokens_.is_sign("|")) made = filter(std::move(made));
  return made;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr left) {
  constexpr std::array<std::string_view, 3> not_arguments = {"else", "or", "and"};
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  if (tokens_.is(TokenType::name) && !is_test(tokens_.now().text))
    tokens_.refuse_here("the test " + tokens_.now().text);
  ExpressionPtr made =
      make(ExpressionKind::test, line, parts_of(std::move(left)), tokens_.expect(TokenType::name, "a test").text);
  const Token& next = tokens_.now();
  if (tokens_.is_sign("(")) {
    arguments(*made);
  } else if (tokens_.is_name("is")) {
    tokens_.fail_here("a test after a test");
  } else if ((next.type == TokenType::name &&
              std::find(not_arguments.begin(), not_arguments.end(), next.text) == not_arguments.end()) ||
             next.type == TokenType::text || next.type == TokenType::number || tokens_.is_sign("[") ||
             tokens_.is_sign("{")) {
    const Nesting nesting(*this);
    adopt(*made, postfix(primary()));
  }
  return negated ? make(ExpressionKind::negation, line, parts_of(std::move(made))) : std::move(made);
}

Target ExpressionParser::target_name() {
  Target target;
  target.name = tokens_.expect(TokenType::name, "the name of a variable").text;
  constexpr std::array<std::string_view, 6> constants = {"true", "false", "none", "True", "False", "None"};
  if (std::find(constants.begin(), constants.end(), target.name) != constants.end())
    tokens_.fail_here(fmt::format("'{}' cannot be assigned to", target.name));
  return target;
}

Target ExpressionParser::single_target(bool members) {
  const Nesting nesting(*this);
  if (tokens_.skip_sign("(")) {
    Target inner = target(members);
    tokens_.expect_sign(")");
    return inner;
  }
  Target target = target_name();
  if (members && tokens_.skip_sign(".")) target.member = tokens_.expect(TokenType::name, "a name").text;
  return target;
}

Target ExpressionParser::target(bool members) {
  Target first = single_target(members);
  if (!tokens_.is_sign(",")) return first;
  Target tuple;
  tuple.parts.push_back(std::move(first));
  while (tokens_.skip_sign(",")) {
    if (tokens_.is_sign(")") || tokens_.is_name("in") || tokens_.is_sign("=")) break;
    tuple.parts.push_back(single_target(members));
  }
  return tuple;
}

}  // namespace headroom::jinja
