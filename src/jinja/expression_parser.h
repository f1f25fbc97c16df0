// Expressions, with Jinja's precedence: or, and, not, comparisons, + -, ~, * / // %, **, signs, postfix, filters and
// tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/token_stream.h"

namespace headroom::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // One expression; without `conditions` an inline `if` does not belong to it.
  ExpressionPtr expression(bool conditions = true);
  // One expression, or a tuple when commas follow.
  ExpressionPtr tuple(bool conditions = true);
  // The filters of `{% set x | a | b %}`; null when there are none.
  ExpressionPtr filters_of_block();
  // A name, a member of a namespace if `members`, or a tuple of these.
  Target target(bool members);
  // The name of a variable.
  Target target_name();

  // Names that a macro may not use; empty outside macros.
  std::vector<std::string> forbidden_names;

 private:
  // Bounds the depth of the parser's own recursion.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }

   private:
    ExpressionParser& parser_;
  };

  ExpressionPtr make(ExpressionKind kind, int line, std::vector<ExpressionPtr> parts = {}, std::string text = {});
  // Appends a part.
  void adopt(Expression& parent, ExpressionPtr part);
  ExpressionPtr operation(ExpressionKind kind, Operator op, int line, ExpressionPtr left, ExpressionPtr right);
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr name();
  ExpressionPtr text_literal();
  ExpressionPtr parenthesis();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr left);
  ExpressionPtr attribute(ExpressionPtr left);
  ExpressionPtr subscript(ExpressionPtr left);
  ExpressionPtr filters_and_tests(ExpressionPtr left);
  ExpressionPtr filter(ExpressionPtr left);
  ExpressionPtr test(ExpressionPtr left);
  void arguments(Expression& call);
  void argument(Expression& call);
  Target single_target(bool members);

  TokenStream& tokens_;
  int nesting_ = 0;
};

}  // namespace headroom::jinja
