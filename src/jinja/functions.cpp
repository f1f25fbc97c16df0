// What templates can call: macros, namespace, dict, range, raise_exception, strftime_now.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/print.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;

// Refuses strftime formats with other conversions than those of a fixed, small width.
void check_format(const std::string& format) {
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    ++i;
    if (i < format.size() && format[i] == '-') ++i;
    if (i >= format.size() || std::string_view("aAbBcdeHIjmMpSuUwWyYxX%").find(format[i]) == std::string_view::npos)
      refuse(fmt::format("strftime_now(\"{}\")", format.substr(0, 40)));
  }
}

}  // namespace

bool is_global_function(std::string_view name) {
  constexpr std::array<std::string_view, 5> known = {"namespace", "dict", "range", "raise_exception", "strftime_now"};
  for (const std::string_view other : {"lipsum", "cycler", "joiner"})
    if (name == other) refuse(name);
  return std::find(known.begin(), known.end(), name) != known.end();
}

Value Interpreter::call_macro(const Callable& callable, const Arguments& given) {
  const Level level(budget_);
  const MacroDefinition& macro = *callable.macro;
  const size_t count = macro.parameters.size();
  if (given.positional.size() > count) fail(fmt::format("the macro '{}' takes {} arguments", macro.name, count));
  for (const auto& argument : given.named) {
    const auto at = std::find(macro.parameters.begin(), macro.parameters.end(), argument.first);
    if (at == macro.parameters.end() || static_cast<size_t>(at - macro.parameters.begin()) < given.positional.size())
      fail(fmt::format("the macro '{}' with the argument '{}'", macro.name, argument.first));
  }
  const auto outer = scope_;
  scope_ = std::make_shared<Scope>(budget_, callable.scope->shared_from_this());
  struct Restore {
    std::shared_ptr<Scope>& scope;
    const std::shared_ptr<Scope>& outer;
    ~Restore() { scope = outer; }
  } const restore{scope_, outer};
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    const auto named = std::find_if(given.named.begin(), given.named.end(),
                                    [&name](const auto& argument) { return argument.first == name; });
    const size_t first_default = count - macro.defaults.size();
    scope_->set(name, i < given.positional.size()  ? given.positional[i]
                      : named != given.named.end() ? named->second
                      : i >= first_default
                          ? evaluate(*macro.defaults[i - first_default])
                          : make_undefined(budget_, fmt::format("the parameter '{}' was not given", name)));
  }
  return run_macro(macro);
}

Value Interpreter::call_global(std::string_view name, const Arguments& given) {
  if (name == "namespace") return make_namespace(given);
  if (name == "dict") return make_dict(given);
  if (name == "range") return make_range(given);
  if (name == "strftime_now") return format_now(given);
  const Value& message = *given.bind(name, {"message"}, 1)[0];
  throw Problem{Problem::Kind::raised, to_text(budget_, message)};
}

Value Interpreter::make_dict(const Arguments& given) {
  if (given.positional.size() > 1) fail("dict with several arguments without a name");
  auto made = std::make_shared<Dict>(budget_);
  if (!given.positional.empty()) {
    const Value& from = given.positional[0];
    if (from.is(Type::dict)) {
      for (const auto& [key, value] : from.dict().entries()) made->set(key, value);
    } else {
      const ListRef pairs = iterate(budget_, from);
      for (const Value& pair : pairs->items) {
        const ListRef both = iterate(budget_, pair);
        if (both->items.size() != 2) fail("dict of something other than pairs");
        made->set(both->items[0], both->items[1]);
      }
    }
    budget_.step(static_cast<int64_t>(made->entries().size()));
  }
  for (const auto& [key, value] : given.named) made->set(make_text(budget_, key), value);
  return Value(DictRef(std::move(made)));
}

Value Interpreter::make_namespace(const Arguments& given) {
  const Value from = make_dict(given);
  auto made = std::make_shared<Namespace>();
  made->charge = Charge(budget_, sizeof(Namespace) + 64);
  for (const auto& [key, value] : from.dict().entries()) {
    if (!key.is(Type::text)) refuse("a namespace with names that are not strings");
    if (!key.text().empty() && key.text()[0] == '_') fail(fmt::format("a namespace has no member '{}'", key.text()));
    made->charge.add(static_cast<int64_t>(128 + key.text().size()));
    made->members[key.text()] = value;
  }
  namespaces_.push_back(made);
  return Value(std::move(made));
}

Value Interpreter::make_range(const Arguments& given) {
  const auto bound = given.bind("range", {"", "", ""}, 1);
  int64_t first = 0, last = integer_argument("range", bound[0], 0);
  if (bound[1] != nullptr) first = std::exchange(last, integer_argument("range", bound[1], 0));
  const int64_t step = integer_argument("range", bound[2], 1);
  if (step == 0) fail("range with the step 0");
  std::vector<Value> items;
  for (int64_t at = first; step > 0 ? at < last : at > last;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) fail(fmt::format("a range of more than {} items", kMaxRange));
    items.emplace_back(at);
    budget_.step();
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(budget_, ListKind::range, std::move(items));
}

Value Interpreter::format_now(const Arguments& given) {
  const std::string& format = text_argument("strftime_now", given.bind("strftime_now", {"format"}, 1)[0]);
  if (format.empty()) return make_text(budget_, {});
  if (format.size() > 200) refuse("strftime_now with a format of more than 200 bytes");
  check_format(format);
  std::string text(8192, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &now_));
  return make_text(budget_, std::move(text));
}

}  // namespace headroom::jinja
