#include "jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "jinja/expression_parser.h"
#include "jinja/token_stream.h"

namespace headroom::jinja {
namespace {

constexpr int kMaxBlockNesting = 60;

bool assigns_loop(const Target& target) {
  return target.name == "loop" || std::any_of(target.parts.begin(), target.parts.end(), assigns_loop);
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  Body whole() { return body({}); }

 private:
  // Statements up to a tag with one of these names, which is then the current token; without names up to the end.
  Body body(std::initializer_list<std::string_view> ends);
  Body block(std::initializer_list<std::string_view> ends);
  Statement statement();
  Statement set(int line);
  Statement condition(int line);
  Statement loop(int line);
  Statement macro(int line);
  Statement generation(int line);
  Statement jump(StatementKind kind, int line);
  void parameters(MacroDefinition& macro);
  void close(std::string_view name);

  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;  // around the current statement, inside the same macro or block
};

Body Parser::body(std::initializer_list<std::string_view> ends) {
  if (++nesting_ > kMaxBlockNesting)
    tokens_.fail_here(fmt::format("blocks nested deeper than {} levels", kMaxBlockNesting));
  Body statements;
  while (!tokens_.is(TokenType::end)) {
    const int line = tokens_.now().line;
    if (tokens_.is(TokenType::data)) {
      Statement& data = statements.emplace_back();
      data.kind = StatementKind::data;
      data.line = line;
      data.text = tokens_.take().text;
    } else if (tokens_.is(TokenType::variable_begin)) {
      tokens_.take();
      Statement& output = statements.emplace_back();
      output.kind = StatementKind::output;
      output.line = line;
      output.expression = expressions_.tuple();
      tokens_.expect(TokenType::variable_end, "'}}'");
    } else {
      tokens_.expect(TokenType::block_begin, "a tag");
      if (tokens_.is(TokenType::name) && std::find(ends.begin(), ends.end(), tokens_.now().text) != ends.end()) {
        --nesting_;
        return statements;
      }
      statements.push_back(statement());
      tokens_.expect(TokenType::block_end, "'%}'");
    }
  }
  if (ends.size() > 0) tokens_.fail_here(fmt::format("the template ends where '{}' was expected", *(ends.end() - 1)));
  --nesting_;
  return statements;
}

// The body of a tag, from the end mark of the tag on.
Body Parser::block(std::initializer_list<std::string_view> ends) {
  tokens_.skip_sign(":");
  tokens_.expect(TokenType::block_end, "'%}'");
  return body(ends);
}

void Parser::close(std::string_view name) { tokens_.expect_name(name); }

Statement Parser::statement() {
  constexpr std::array<std::string_view, 16> outside = {
      "block", "extends", "print", "include",    "from",  "import", "with",      "do",
      "call",  "filter",  "trans", "autoescape", "debug", "raw",    "pluralize", "language"};
  const Token tag = tokens_.expect(TokenType::name, "the name of a tag");
  if (tag.text == "set") return set(tag.line);
  if (tag.text == "if") return condition(tag.line);
  if (tag.text == "for") return loop(tag.line);
  if (tag.text == "macro") return macro(tag.line);
  if (tag.text == "generation") return generation(tag.line);
  if (tag.text == "break") return jump(StatementKind::break_loop, tag.line);
  if (tag.text == "continue") return jump(StatementKind::next_item, tag.line);
  if (std::find(outside.begin(), outside.end(), tag.text) != outside.end())
    throw ProblemAt{tag.line, fmt::format("'the tag {}' is not supported", tag.text), true};
  throw ProblemAt{tag.line, fmt::format("the unexpected tag '{}'", tag.text)};
}

Statement Parser::set(int line) {
  Statement made;
  made.line = line;
  made.target = expressions_.target(true);
  if (loops_ > 0 && assigns_loop(made.target)) tokens_.fail_here("'loop' cannot be assigned to");
  if (tokens_.skip_sign("=")) {
    made.kind = StatementKind::set;
    made.expression = expressions_.tuple();
    return made;
  }
  made.kind = StatementKind::set_block;
  made.expression = expressions_.filters_of_block();
  const int loops = std::exchange(loops_, 0);
  made.body = block({"endset"});
  loops_ = loops;
  close("endset");
  return made;
}

Statement Parser::condition(int line) {
  Statement made;
  made.kind = StatementKind::condition;
  made.line = line;
  do {
    Branch& branch = made.branches.emplace_back();
    branch.condition = expressions_.tuple(false);
    branch.body = block({"elif", "else", "endif"});
  } while (tokens_.skip_name("elif"));
  if (tokens_.skip_name("else")) made.body = block({"endif"});
  close("endif");
  return made;
}

Statement Parser::loop(int line) {
  Statement made;
  made.kind = StatementKind::loop;
  made.line = line;
  made.target = expressions_.target(false);
  if (assigns_loop(made.target)) tokens_.fail_here("'loop' cannot be assigned to");
  tokens_.expect_name("in");
  made.expression = expressions_.tuple(false);
  if (tokens_.skip_name("if")) made.filter = expressions_.expression();
  if (tokens_.is_name("recursive")) tokens_.refuse_here("a recursive loop");
  ++loops_;
  made.body = block({"endfor", "else"});
  --loops_;
  if (tokens_.skip_name("else")) made.otherwise = block({"endfor"});
  close("endfor");
  return made;
}

void Parser::parameters(MacroDefinition& macro) {
  tokens_.expect_sign("(");
  while (!tokens_.is_sign(")")) {
    if (!macro.parameters.empty()) tokens_.expect_sign(",");
    const Target parameter = expressions_.target_name();
    if (std::find(macro.parameters.begin(), macro.parameters.end(), parameter.name) != macro.parameters.end())
      tokens_.fail_here(fmt::format("the parameter '{}' appears twice", parameter.name));
    macro.parameters.push_back(parameter.name);
    if (tokens_.skip_sign("=")) {
      macro.defaults.push_back(expressions_.expression());
    } else if (!macro.defaults.empty()) {
      tokens_.fail_here("a parameter without a default after one with a default");
    }
  }
  tokens_.expect_sign(")");
}

Statement Parser::macro(int line) {
  Statement made;
  made.kind = StatementKind::macro;
  made.line = line;
  made.macro = std::make_unique<MacroDefinition>();
  made.macro->name = expressions_.target_name().name;
  parameters(*made.macro);
  std::vector<std::string> forbidden;
  for (const char* name : {"varargs", "kwargs", "caller"})
    if (std::find(made.macro->parameters.begin(), made.macro->parameters.end(), name) == made.macro->parameters.end())
      forbidden.push_back(name);
  std::swap(forbidden, expressions_.forbidden_names);
  const int loops = std::exchange(loops_, 0);
  made.macro->body = block({"endmacro"});
  loops_ = loops;
  std::swap(forbidden, expressions_.forbidden_names);
  close("endmacro");
  return made;
}

Statement Parser::generation(int line) {
  Statement made;
  made.kind = StatementKind::generation;
  made.line = line;
  const int loops = std::exchange(loops_, 0);
  made.body = block({"endgeneration"});
  loops_ = loops;
  close("endgeneration");
  return made;
}

Statement Parser::jump(StatementKind kind, int line) {
  if (loops_ == 0)
    throw ProblemAt{line, fmt::format("'{}' outside a loop", kind == StatementKind::break_loop ? "break" : "continue")};
  Statement made;
  made.kind = kind;
  made.line = line;
  return made;
}

}  // namespace

Body parse(std::string_view source) { return Parser(source).whole(); }

}  // namespace headroom::jinja
