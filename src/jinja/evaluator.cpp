// How the interpreter evaluates expressions.
#include <fmt/format.h>

#include <utility>

#include "jinja/attributes.h"
#include "jinja/filters.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/problem.h"
#include "jinja/tests.h"

namespace headroom::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Level level(budget_);
  budget_.step();
  line_ = expression.line;
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i]); };
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.value;
    case ExpressionKind::name:
      return name(expression);
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return items(expression);
    case ExpressionKind::dict:
      return dict(expression);
    case ExpressionKind::attribute: {
      const Value value = part(0);
      line_ = expression.line;
      return get_attribute(budget_, value, expression.text);
    }
    case ExpressionKind::item: {
      const Value value = part(0), item = part(1);
      line_ = expression.line;
      return get_item(budget_, value, item);
    }
    case ExpressionKind::slice: {
      const Value value = part(0), first = optional(expression.parts[1]), last = optional(expression.parts[2]);
      return get_slice(budget_, value, first, last, optional(expression.parts[3]));
    }
    case ExpressionKind::call:
      return call(expression);
    case ExpressionKind::filter:
      return filter(expression, Value());
    case ExpressionKind::test: {
      const Value value = part(0);
      const Arguments given = arguments(expression);
      line_ = expression.line;
      return Value(run_test(budget_, expression.text, value, given));
    }
    case ExpressionKind::negation:
      return Value(!truth(part(0)));
    case ExpressionKind::minus:
      return negate(part(0));
    case ExpressionKind::plus:
      return positive(part(0));
    case ExpressionKind::arithmetic: {
      const Value left = part(0), right = part(1);
      line_ = expression.line;
      return arithmetic(budget_, expression.operators[0], left, right);
    }
    case ExpressionKind::comparison:
      return comparison(expression);
    case ExpressionKind::concat:
      return concat(expression);
    case ExpressionKind::both: {
      Value left = part(0);
      return truth(left) ? part(1) : left;
    }
    case ExpressionKind::either: {
      Value left = part(0);
      return truth(left) ? left : part(1);
    }
    case ExpressionKind::condition:
      return condition(expression);
  }
  return Value();
}

Value Interpreter::name(const Expression& expression) {
  const std::string& name = expression.text;
  if (const Value* found = scope_->find(name)) return *found;
  if (const Value* found = variables_.find(name)) return *found;
  if (!is_global_function(name)) return make_undefined(budget_, fmt::format("'{}' is undefined", name));
  auto function = std::make_shared<Callable>();
  function->charge = Charge(budget_, sizeof(Callable) + 32);
  function->name = name;
  return Value(std::shared_ptr<const Callable>(std::move(function)));
}

Value Interpreter::items(const Expression& expression) {
  std::vector<Value> items;
  items.reserve(expression.parts.size());
  for (const ExpressionPtr& part : expression.parts) items.push_back(evaluate(*part));
  const bool tuple = expression.kind == ExpressionKind::tuple;
  return make_list(budget_, tuple ? ListKind::tuple : ListKind::list, std::move(items));
}

Value Interpreter::dict(const Expression& expression) {
  auto made = std::make_shared<Dict>(budget_);
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i]);
    made->set(key, evaluate(*expression.parts[i + 1]));
  }
  return Value(DictRef(std::move(made)));
}

Arguments Interpreter::arguments(const Expression& expression) {
  Arguments given;
  const size_t named = expression.parts.size() - expression.keywords.size();
  for (size_t i = 1; i < expression.parts.size(); ++i) {
    Value value = evaluate(*expression.parts[i]);
    if (i < named) {
      given.positional.push_back(std::move(value));
    } else {
      given.named.emplace_back(expression.keywords[i - named], std::move(value));
    }
  }
  return given;
}

Value Interpreter::call(const Expression& expression) {
  const Value function = evaluate(*expression.parts[0]);
  const Arguments given = arguments(expression);
  line_ = expression.line;
  if (function.is(Type::undefined)) fail(function.why());
  if (!function.is(Type::callable)) fail(fmt::format("a {} cannot be called", type_name(function)));
  const Callable& callable = function.callable();
  if (callable.macro != nullptr) return call_macro(callable, given);
  if (callable.is_method) return call_method(budget_, callable.self, callable.name, given);
  return call_global(callable.name, given);
}

// `value` is the text that a set block captured: the input of the innermost filter, if that has no value of its own.
Value Interpreter::filter(const Expression& expression, const Value& value) {
  const ExpressionPtr& source = expression.parts[0];
  Value filtered = value;
  if (source != nullptr) filtered = source->kind == ExpressionKind::filter ? filter(*source, value) : evaluate(*source);
  const Arguments given = arguments(expression);
  line_ = expression.line;
  budget_.step();
  return run_filter(budget_, expression.text, filtered, given);
}

Value Interpreter::comparison(const Expression& expression) {
  Value left = evaluate(*expression.parts[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    line_ = expression.line;
    if (!compare(budget_, expression.operators[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::concat(const Expression& expression) {
  std::string joined, buffer;
  for (const ExpressionPtr& part : expression.parts) {
    const Value value = evaluate(*part);
    const std::string_view text = text_view(budget_, value, buffer);
    budget_.check_text(joined.size() + text.size());
    joined += text;
  }
  return make_text(budget_, std::move(joined));
}

Value Interpreter::condition(const Expression& expression) {
  if (truth(evaluate(*expression.parts[1]))) return evaluate(*expression.parts[0]);
  if (expression.parts[2] != nullptr) return evaluate(*expression.parts[2]);
  return make_undefined(budget_, "the inline 'if' without 'else' gave no value");
}

}  // namespace headroom::jinja
