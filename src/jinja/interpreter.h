// Runs a parsed template.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/arguments.h"
#include "jinja/ast.h"
#include "jinja/scope.h"
#include "jinja/template.h"

namespace headroom::jinja {

struct Loop;

// For one rendering. All members throw Problem; line() then tells where.
class Interpreter {
 public:
  // `variables` and `budget` outlive it.
  Interpreter(const Dict& variables, const std::tm& now, Budget& budget);
  ~Interpreter();

  Rendered run(const Body& body);
  int line() const { return line_; }

 private:
  enum class Flow { on, break_loop, next_item };
  class Capture;
  class Inside;

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow condition(const Statement& statement);
  Flow loop(const Statement& statement);
  std::shared_ptr<Loop> make_loop(const Statement& statement);
  void set_block(const Statement& statement);
  void generation(const Statement& statement);
  void define_macro(const Statement& statement);
  // Runs the body in the current scope, which holds the arguments.
  Value run_macro(const MacroDefinition& macro);
  void assign(const Target& target, Value value);
  void write(std::string_view text);

  Value evaluate(const Expression& expression);
  Value optional(const ExpressionPtr& expression) { return expression == nullptr ? Value() : evaluate(*expression); }
  Value name(const Expression& expression);
  Value items(const Expression& expression);
  Value dict(const Expression& expression);
  Value call(const Expression& expression);
  Value filter(const Expression& expression, const Value& value);
  Value comparison(const Expression& expression);
  Value concat(const Expression& expression);
  Value condition(const Expression& expression);
  Arguments arguments(const Expression& expression);
  Value call_macro(const Callable& macro, const Arguments& arguments);
  Value call_global(std::string_view name, const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  Value make_dict(const Arguments& arguments);
  Value make_range(const Arguments& arguments);
  Value format_now(const Arguments& arguments);

  const Dict& variables_;
  const std::tm& now_;
  Budget& budget_;
  int line_ = 1;
  std::shared_ptr<Scope> scope_;
  std::vector<std::shared_ptr<Scope>> kept_;  // scopes that macros were defined in
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::string* output_ = nullptr;
  int captures_ = 0;  // around the current statement
  Rendered rendered_;
};

// Whether a name that is not a variable is a function; refuses Jinja's functions that are outside the subset.
bool is_global_function(std::string_view name);

}  // namespace headroom::jinja
