// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/operators.h"
#include "jinja/value.h"

namespace headroom::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind {
  constant,    // value
  name,        // text
  list,        // parts
  tuple,       // parts
  dict,        // parts: key, value, key, value ...
  attribute,   // parts[0].text
  item,        // parts[0][parts[1]]
  slice,       // parts[0][parts[1]:parts[2]:parts[3]]; null where not given
  call,        // parts[0](parts[1] ..., keywords)
  filter,      // parts[0]|text(parts[1] ..., keywords); parts[0] is null in a filtered set block
  test,        // parts[0] is text(parts[1] ..., keywords)
  negation,    // not parts[0]
  minus,       // -parts[0]
  plus,        // +parts[0]
  arithmetic,  // parts[0] operators[0] parts[1]
  comparison,  // parts[0] operators[0] parts[1] operators[1] parts[2] ...
  concat,      // parts joined by ~
  both,        // parts[0] and parts[1]
  either,      // parts[0] or parts[1]
  condition,   // parts[0] if parts[1] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind;
  int line = 0;
  int depth = 1;  // of the tree below
  std::string text;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> keywords;  // names of the last arguments in parts
  std::vector<Operator> operators;
};

// What an assignment sets: a name, a member of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string member;  // of the namespace `name`, when not empty
  std::vector<Target> parts;
};

struct Statement;
using Body = std::vector<Statement>;

// A macro's parameters and body. defaults[i] belongs to the i-th of the last parameters.
struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;
  Body body;
};

enum class StatementKind {
  data,        // text
  output,      // expression
  set,         // target = expression
  set_block,   // target = body, through the filters of expression when there is one
  condition,   // the first body whose condition holds; otherwise body
  loop,        // for target in expression if filter: body, else otherwise
  macro,       // macro
  generation,  // body
  break_loop,
  next_item,
};

struct Branch;

struct Statement {
  StatementKind kind;
  int line = 0;
  std::string text;
  ExpressionPtr expression, filter;
  Target target;
  Body body, otherwise;
  std::vector<Branch> branches;
  std::unique_ptr<MacroDefinition> macro;
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

}  // namespace headroom::jinja
