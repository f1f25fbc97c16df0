#include "jinja/interpreter.h"

#include <fmt/format.h>

#include <utility>

#include "jinja/filters.h"
#include "jinja/loop.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/problem.h"

namespace headroom::jinja {

// Redirects the output to `text` for as long as this lives.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.output_, &text)) {
    ++interpreter_.captures_;
  }
  ~Capture() {
    interpreter_.output_ = outer_;
    --interpreter_.captures_;
  }
  std::string text;

 private:
  Interpreter& interpreter_;
  std::string* outer_;
};

// Opens a scope inside the current one or another, for as long as this lives.
class Interpreter::Inside {
 public:
  explicit Inside(Interpreter& interpreter) : Inside(interpreter, interpreter.scope_) {}
  Inside(Interpreter& interpreter, std::shared_ptr<Scope> around)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter.scope_ = std::make_shared<Scope>(interpreter.budget_, std::move(around));
  }
  ~Inside() { interpreter_.scope_ = std::move(outer_); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

Interpreter::Interpreter(const Dict& variables, const std::tm& now, Budget& budget)
    : variables_(variables), now_(now), budget_(budget) {}

// Namespaces can hold themselves: emptying them while all are alive breaks the cycles, and frees them one by one.
Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->members.clear();
  for (const auto& scope : kept_) scope->variables.clear();
}

Rendered Interpreter::run(const Body& body) {
  scope_ = std::make_shared<Scope>(budget_, nullptr);
  output_ = &rendered_.text;
  execute(body);
  return std::move(rendered_);
}

void Interpreter::write(std::string_view text) {
  budget_.touch(text.size());
  if (output_->size() + text.size() > static_cast<size_t>(budget_.limits().text_bytes))
    budget_.check_text(output_->size() + text.size());
  *output_ += text;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Level level(budget_);
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  budget_.step();
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::data:
      write(statement.text);
      return Flow::on;
    case StatementKind::output: {
      std::string buffer;
      write(text_view(budget_, evaluate(*statement.expression), buffer));
      return Flow::on;
    }
    case StatementKind::set:
      assign(statement.target, evaluate(*statement.expression));
      return Flow::on;
    case StatementKind::set_block:
      set_block(statement);
      return Flow::on;
    case StatementKind::condition:
      return condition(statement);
    case StatementKind::loop:
      return loop(statement);
    case StatementKind::macro:
      define_macro(statement);
      return Flow::on;
    case StatementKind::generation:
      generation(statement);
      return Flow::on;
    case StatementKind::break_loop:
      return Flow::break_loop;
    case StatementKind::next_item:
      return Flow::next_item;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::condition(const Statement& statement) {
  for (const Branch& branch : statement.branches)
    if (truth(evaluate(*branch.condition))) return execute(branch.body);
  return execute(statement.body);
}

// The loop's condition sees the item, and the variables around the loop.
std::shared_ptr<Loop> Interpreter::make_loop(const Statement& statement) {
  const ListRef items = iterate(budget_, evaluate(*statement.expression));
  auto loop = std::make_shared<Loop>();
  loop->charge = Charge(budget_, sizeof(Loop) + 640);  // a deque begins with a block of 512 bytes
  loop->nesting = items->nesting + 1;
  if (loop->nesting > kMaxNesting) exceed(fmt::format("values nested deeper than {} levels", kMaxNesting));
  if (statement.filter == nullptr) loop->length = static_cast<int64_t>(items->items.size());
  loop->fetch = [this, &statement, items, around = scope_, next = size_t{0}]() mutable -> std::optional<Value> {
    while (next < items->items.size()) {
      budget_.step();
      const Value& item = items->items[next++];
      if (statement.filter == nullptr) return item;
      const Inside inside(*this, around);
      assign(statement.target, item);
      if (truth(evaluate(*statement.filter))) return item;
    }
    return std::nullopt;
  };
  return loop;
}

Interpreter::Flow Interpreter::loop(const Statement& statement) {
  const std::shared_ptr<Loop> loop = make_loop(statement);
  // The loop's condition uses variables that end with the loop: a `loop` that is kept yields no more items.
  struct End {
    Loop& loop;
    ~End() {
      loop.fetch = [] { return std::nullopt; };
    }
  } const end{*loop};
  bool any = false;
  while (loop->advance()) {
    any = true;
    budget_.step();
    const Inside inside(*this);
    scope_->set("loop", Value(loop));
    assign(statement.target, loop->current);
    if (execute(statement.body) == Flow::break_loop) break;
  }
  if (any) return Flow::on;
  const Inside inside(*this);
  return execute(statement.otherwise);
}

void Interpreter::set_block(const Statement& statement) {
  Value value;
  {
    const Inside inside(*this);
    Capture capture(*this);
    execute(statement.body);
    value = make_text(budget_, std::move(capture.text));
    if (statement.expression != nullptr) value = filter(*statement.expression, value);
  }
  assign(statement.target, std::move(value));
}

void Interpreter::generation(const Statement& statement) {
  if (captures_ > 0) refuse("generation inside a macro or a set block");
  const size_t begin = output_->size();
  const Inside inside(*this);
  execute(statement.body);
  rendered_.generations.emplace_back(begin, output_->size());
}

void Interpreter::define_macro(const Statement& statement) {
  auto macro = std::make_shared<Callable>();
  macro->charge = Charge(budget_, sizeof(Callable) + 64);
  macro->name = statement.macro->name;
  macro->macro = statement.macro.get();
  macro->scope = scope_.get();
  if (!std::exchange(scope_->kept, true)) kept_.push_back(scope_);
  scope_->set(macro->name, Value(std::shared_ptr<const Callable>(macro)));
}

Value Interpreter::run_macro(const MacroDefinition& macro) {
  Capture capture(*this);
  execute(macro.body);
  return make_text(budget_, std::move(capture.text));
}

void Interpreter::assign(const Target& target, Value value) {
  if (!target.parts.empty()) {
    if (value.is(Type::undefined)) fail(value.why());
    const ListRef list = iterate(budget_, value);
    if (list->items.size() != target.parts.size())
      fail(fmt::format("{} values for {} variables", list->items.size(), target.parts.size()));
    for (size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], list->items[i]);
    return;
  }
  if (target.member.empty()) return scope_->set(target.name, std::move(value));
  const Value* space = scope_->find(target.name);
  if (space == nullptr || !space->is(Type::name_space)) fail(fmt::format("'{}' is not a namespace", target.name));
  if (target.member[0] == '_') fail(fmt::format("a namespace has no member '{}'", target.member));
  Namespace& members = space->name_space();
  if (members.members.count(target.member) == 0) members.charge.add(static_cast<int64_t>(128 + target.member.size()));
  members.members[target.member] = std::move(value);
}

}  // namespace headroom::jinja
