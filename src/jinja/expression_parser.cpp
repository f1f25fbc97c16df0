#include "jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace headroom::jinja {
namespace {

constexpr int kMaxParseNesting = 80;
constexpr int kMaxTreeDepth = 200;

struct SignOperator {
  std::string_view sign;
  Operator op;
};

constexpr std::array<SignOperator, 6> kComparisons = {{{"==", Operator::equal},
                                                       {"!=", Operator::not_equal},
                                                       {"<", Operator::less},
                                                       {"<=", Operator::less_equal},
                                                       {">", Operator::greater},
                                                       {">=", Operator::greater_equal}}};
constexpr std::array<SignOperator, 2> kSums = {{{"+", Operator::add}, {"-", Operator::subtract}}};
constexpr std::array<SignOperator, 4> kProducts = {
    {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};

template <size_t n>
std::optional<Operator> take_operator(TokenStream& tokens, const std::array<SignOperator, n>& among) {
  for (const SignOperator& candidate : among)
    if (tokens.skip_sign(candidate.sign)) return candidate.op;
  return std::nullopt;
}

template <typename... Parts>
std::vector<ExpressionPtr> parts_of(Parts... parts) {
  std::vector<ExpressionPtr> made;
  (made.push_back(std::move(parts)), ...);
  return made;
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser.nesting_ > kMaxParseNesting)
    parser.tokens_.fail_here(fmt::format("expressions nested deeper than {} levels", kMaxParseNesting));
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr part) {
  if (part != nullptr) parent.depth = std::max(parent.depth, part->depth + 1);
  parent.parts.push_back(std::move(part));
  if (parent.depth > kMaxTreeDepth)
    tokens_.fail_here(fmt::format("an expression of more than {} levels", kMaxTreeDepth));
}

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts,
                                     std::string text) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line;
  made->text = std::move(text);
  for (ExpressionPtr& part : parts) adopt(*made, std::move(part));
  return made;
}

ExpressionPtr ExpressionParser::operation(ExpressionKind kind, Operator op, int line, ExpressionPtr left,
                                          ExpressionPtr right) {
  ExpressionPtr made = make(kind, line, parts_of(std::move(left), std::move(right)));
  made->operators = {op};
  return made;
}

ExpressionPtr ExpressionParser::expression(bool conditions) {
  const Nesting nesting(*this);
  ExpressionPtr left = either();
  while (conditions && tokens_.is_name("if")) {
    const int line = tokens_.take().line;
    ExpressionPtr condition = either();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? expression() : nullptr;
    left = make(ExpressionKind::condition, line, parts_of(std::move(left), std::move(condition), std::move(otherwise)));
  }
  return left;
}

ExpressionPtr ExpressionParser::tuple(bool conditions) {
  const int line = tokens_.now().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(expression(conditions));
  if (!tokens_.is_sign(",")) return std::move(parts.front());
  while (tokens_.skip_sign(",")) {
    if (tokens_.is(TokenType::variable_end) || tokens_.is(TokenType::block_end) || tokens_.is_sign(")")) break;
    parts.push_back(expression(conditions));
  }
  return make(ExpressionKind::tuple, line, std::move(parts));
}

ExpressionPtr ExpressionParser::either() {
  ExpressionPtr left = both();
  while (tokens_.is_name("or")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = both();
    left = make(ExpressionKind::either, line, parts_of(std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  ExpressionPtr left = negation();
  while (tokens_.is_name("and")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = negation();
    left = make(ExpressionKind::both, line, parts_of(std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const Nesting nesting(*this);
  if (!tokens_.is_name("not")) return comparison();
  const int line = tokens_.take().line;
  return make(ExpressionKind::negation, line, parts_of(negation()));
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.now().line;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  parts.push_back(sum());
  while (true) {
    if (const auto op = take_operator(tokens_, kComparisons)) {
      operators.push_back(*op);
    } else if (tokens_.skip_name("in")) {
      operators.push_back(Operator::in);
    } else if (tokens_.is_name("not") && tokens_.ahead().type == TokenType::name && tokens_.ahead().text == "in") {
      tokens_.take();
      tokens_.take();
      operators.push_back(Operator::not_in);
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) return std::move(parts.front());
  ExpressionPtr made = make(ExpressionKind::comparison, line, std::move(parts));
  made->operators = std::move(operators);
  return made;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concat();
  for (int line = tokens_.now().line; const auto op = take_operator(tokens_, kSums); line = tokens_.now().line) {
    ExpressionPtr right = concat();
    left = operation(ExpressionKind::arithmetic, *op, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  const int line = tokens_.now().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(product());
  while (tokens_.skip_sign("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts.front());
  return make(ExpressionKind::concat, line, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  for (int line = tokens_.now().line; const auto op = take_operator(tokens_, kProducts); line = tokens_.now().line) {
    ExpressionPtr right = power();
    left = operation(ExpressionKind::arithmetic, *op, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (tokens_.is_sign("**")) {
    const int line = tokens_.take().line;
    ExpressionPtr right = unary(true);
    left = operation(ExpressionKind::arithmetic, Operator::power, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  const int line = tokens_.now().line;
  ExpressionPtr made;
  if (tokens_.skip_sign("-")) {
    made = make(ExpressionKind::minus, line, parts_of(unary(false)));
  } else if (tokens_.skip_sign("+")) {
    made = make(ExpressionKind::plus, line, parts_of(unary(false)));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filters ? filters_and_tests(std::move(made)) : std::move(made);
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_.now();
  if (token.type == TokenType::name) return name();
  if (token.type == TokenType::text) return text_literal();
  if (token.type == TokenType::number) {
    const Token number = tokens_.take();
    ExpressionPtr made = make(ExpressionKind::constant, number.line);
    made->value = number.number;
    return made;
  }
  if (tokens_.is_sign("(")) return parenthesis();
  if (tokens_.is_sign("[")) return list();
  if (tokens_.is_sign("{")) return dict();
  tokens_.fail_expecting("a value");
}

ExpressionPtr ExpressionParser::name() {
  const std::string& text = tokens_.now().text;
  if (std::find(forbidden_names.begin(), forbidden_names.end(), text) != forbidden_names.end() || text == "self" ||
      text == "super")
    tokens_.refuse_here(text);
  Token token = tokens_.take();
  std::optional<Value> value;
  if (token.text == "true" || token.text == "True") value = Value(true);
  if (token.text == "false" || token.text == "False") value = Value(false);
  if (token.text == "none" || token.text == "None") value = Value();
  if (!value) return make(ExpressionKind::name, token.line, {}, std::move(token.text));
  ExpressionPtr made = make(ExpressionKind::constant, token.line);
  made->value = *value;
  return made;
}

ExpressionPtr ExpressionParser::text_literal() {
  const int line = tokens_.now().line;
  std::string joined;
  while (tokens_.is(TokenType::text)) joined += tokens_.take().text;
  ExpressionPtr made = make(ExpressionKind::constant, line);
  made->value = constant_text(std::move(joined));
  return made;
}

ExpressionPtr ExpressionParser::parenthesis() {
  const int line = tokens_.take().line;
  if (tokens_.skip_sign(")")) return make(ExpressionKind::tuple, line);
  ExpressionPtr made = tuple();
  tokens_.expect_sign(")");
  return made;
}

ExpressionPtr ExpressionParser::list() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> parts;
  while (!tokens_.is_sign("]")) {
    if (!parts.empty()) {
      tokens_.expect_sign(",");
      if (tokens_.is_sign("]")) break;
    }
    parts.push_back(expression());
  }
  tokens_.expect_sign("]");
  return make(ExpressionKind::list, line, std::move(parts));
}

ExpressionPtr ExpressionParser::dict() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> parts;
  while (!tokens_.is_sign("}")) {
    if (!parts.empty()) {
      tokens_.expect_sign(",");
      if (tokens_.is_sign("}")) break;
    }
    parts.push_back(expression());
    tokens_.expect_sign(":");
    parts.push_back(expression());
  }
  tokens_.expect_sign("}");
  return make(ExpressionKind::dict, line, std::move(parts));
}

}  // namespace headroom::jinja
