#include "doctor/config/python_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "doctor/config/python_defaults.h"
#include "doctor/config/setting.h"

namespace headroom::doctor {
namespace {

using Token = PythonToken::Kind;
using Kind = PythonValue::Kind;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxWeight = 1000;

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return std::to_string(static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

std::optional<double> number_of(const PythonValue& value) {
  return value.kind == Kind::number ? real_number(value.text) : std::nullopt;
}

std::optional<double> compute(const std::string& symbol, double a, double b) {
  double result = NAN;
  if (symbol == "+") result = a + b;
  if (symbol == "-") result = a - b;
  if (symbol == "*") result = a * b;
  if (symbol == "/" && b != 0) result = a / b;
  if (symbol == "//" && b != 0) result = std::floor(a / b);
  if (symbol == "%" && b != 0) result = a - b * std::floor(a / b);
  if (symbol == "**") result = std::pow(a, b);
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

// Limits the size of a name's value, so that names that double each other stay small.
size_t weight(const PythonValue& value) {
  size_t total = 1 + value.text.size() / 64;
  for (const PythonValue& item : value.items) total += weight(item);
  for (const auto& entry : value.entries) total += weight(entry.value);
  return total;
}

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

class CallReader {
 public:
  // `defaults`: collected by an earlier pass.
  CallReader(std::string_view text, const std::vector<PythonToken>& tokens, ScriptDefaults defaults)
      : text_(text), tokens_(tokens), defaults_(std::move(defaults)) {}

  PythonScript read() {
    count_assignments();
    while (at_ < tokens_.size()) statement();
    return std::move(script_);
  }
  ScriptDefaults take_defaults() { return std::move(found_); }

 private:
  const PythonToken& token(size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : past_end_;
  }
  bool is(std::string_view symbol, size_t ahead = 0) const {
    return token(ahead).kind == Token::symbol && token(ahead).text == symbol;
  }
  bool is_word(std::string_view word, size_t ahead = 0) const {
    return token(ahead).kind == Token::name && token(ahead).text == word;
  }
  bool starts_statement(size_t index) const {
    if (index == 0 || tokens_[index - 1].kind == Token::line_end) return true;
    const std::string& before = tokens_[index - 1].text;
    return tokens_[index - 1].kind == Token::symbol && (before == ";" || before == ":");
  }

  // Names assigned more than once are not constants.
  void count_assignments() {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind != Token::name || tokens_[i + 1].kind != Token::symbol || !starts_statement(i)) continue;
      const std::string& symbol = tokens_[i + 1].text;
      if (symbol.back() == '=' && !is_one_of(symbol, {"==", "!=", "<=", ">="})) ++assigned_[tokens_[i].text];
    }
  }

  void statement() {
    if (token().kind == Token::line_end || is(";")) {
      ++at_;
    } else if (is_word("import") || is_word("from")) {
      import();
    } else if (is_word("def") && token(1).kind == Token::name && is("(", 2)) {
      function();
    } else if (token().kind == Token::name && (is("=", 1) || is(":", 1)) && starts_assignment()) {
      assignment();
    } else if (is_word("os") && is(".", 1) && is_word("environ", 2) && is("[", 3) && token(4).kind == Token::string &&
               is("]", 5) && is("=", 6)) {
      environment();
    } else {
      const size_t before = at_;
      expression(0);
      if (at_ == before) ++at_;
    }
  }

  bool starts_assignment() const {
    if (!starts_statement(at_)) return false;
    if (is("=", 1)) return true;
    for (size_t i = 2; i < 40; ++i) {  // NAME : type = value, on this line
      if (token(i).kind == Token::line_end) return false;
      if (is("=", i)) return true;
    }
    return false;
  }

  void import() {
    const bool from = is_word("from");
    std::string name;
    const auto take = [&] {
      if (!name.empty()) script_.imports.push_back(std::move(name));
      name.clear();
    };
    for (++at_; at_ < tokens_.size() && token().kind != Token::line_end && !is(";"); ++at_) {
      if (is(",") || (from && is_word("import"))) {
        take();
      } else if (!is("(") && !is(")")) {
        name += token().text;
      }
    }
    take();
  }

  // Default values of a function's parameters are read like arguments.
  void function() {
    if (token().first) parameters_.clear();
    PythonCall call;
    call.line = token().line;
    call.begin = token().begin;
    call.callee = "def " + token(1).text;
    at_ += 2;
    arguments(call, 1);
    for (const PythonArgument& parameter : call.arguments) {
      if (parameter.name.empty() || !is_constant(parameter.value) || assigned_.count(parameter.name) > 0) continue;
      parameters_[parameter.name] = parameter.value;
      parameters_[parameter.name].assumed = true;
    }
    script_.calls.push_back(std::move(call));
    while (at_ < tokens_.size() && token().kind != Token::line_end && !is(":")) ++at_;
    if (is(":")) ++at_;
  }

  void assignment() {
    PythonAssignment made;
    made.name = token().text;
    made.line = token().line;
    made.top_level = token().first;
    ++at_;
    const bool typed = is(":");
    if (typed) {
      ++at_;
      expression(1);
    }
    if (!is("=")) return;
    ++at_;
    made.value = expression(0);
    if (typed && !made.top_level) found_.note_field(made.name, made.value);
    if (assigned_[made.name] == 1 && constants_.size() < 100'000 && weight(made.value) < kMaxWeight)
      constants_[made.name] = made.value;
    script_.assignments.push_back(std::move(made));
  }

  // `value` as it is at a use.
  static PythonValue used_at(const PythonValue& place, const PythonValue& value) {
    PythonValue result = value;
    result.line = place.line;
    result.begin = place.begin;
    result.end = place.end;
    return result;
  }
  // The default of an option read as "args.NAME"; `place` is the dotted name.
  PythonValue with_default(const PythonValue& place, const std::string& dotted) const {
    const PythonValue* value = defaults_.of(dotted);
    const bool goes_on = is(".") || is("(") || is("[");
    return value && !goes_on ? used_at(place, *value) : place;
  }

  void environment() {
    PythonAssignment made;
    made.name = "os.environ[" + token(4).text + "]";
    made.line = token().line;
    at_ += 7;
    made.value = expression(0);
    script_.assignments.push_back(std::move(made));
  }

  PythonValue started() const {
    PythonValue value;
    value.line = token().line;
    value.begin = value.end = token().begin;
    return value;
  }
  // The value ends before at_.
  void finish(PythonValue& value) const {
    if (at_ == 0) return;
    value.end = std::max(tokens_[std::min(at_, tokens_.size()) - 1].end, value.begin);
    if (value.kind != Kind::unknown) return;
    const auto begin = static_cast<size_t>(value.begin);
    value.text = std::string(text_.substr(begin, std::min<size_t>(80, static_cast<size_t>(value.end) - begin)));
  }

  // A whole expression. One that cannot be evaluated is unknown, but its calls are still collected.
  PythonValue expression(int depth) {
    if (token().kind == Token::name &&
        is_one_of(token().text, {"not", "await", "lambda", "yield", "return", "with", "assert", "if", "elif", "while",
                                 "del", "raise", "for", "else", "in"})) {
      PythonValue value = started();
      ++at_;
      if (depth < kMaxDepth) expression(depth + 1);
      finish(value);
      return value;
    }
    PythonValue value = sum(depth);
    bool other = false;
    const int64_t begin = value.begin;
    while (continues()) {
      other = true;
      ++at_;
      if (is_word("not") || is_word("in")) ++at_;
      sum(depth);
    }
    if (!other) return value;
    PythonValue whole;
    whole.line = value.line;
    whole.begin = begin;
    finish(whole);
    return whole;
  }
  bool continues() const {
    if (token().kind == Token::symbol)
      return is_one_of(token().text, {"==", "!=", "<", ">", "<=", ">=", "|", "&", "^", "<<", ">>", ":=", "@"});
    return token().kind == Token::name &&
           is_one_of(token().text, {"and", "or", "if", "else", "in", "is", "not", "for", "as"});
  }

  PythonValue sum(int depth) {
    PythonValue left = product(depth);
    while (is("+") || is("-")) {
      const std::string symbol = token().text;
      ++at_;
      combine(left, symbol, product(depth));
    }
    return left;
  }
  PythonValue product(int depth) {
    PythonValue left = factor(depth);
    while (is("*") || is("/") || is("//") || is("%")) {
      const std::string symbol = token().text;
      ++at_;
      combine(left, symbol, factor(depth));
    }
    return left;
  }
  PythonValue factor(int depth) {
    if (is("-") || is("+") || is("~") || is("*") || is("**")) return sign(depth);
    PythonValue base = primary(depth);
    if (is("**")) {
      ++at_;
      combine(base, "**", depth < kMaxDepth ? factor(depth + 1) : PythonValue());
    }
    return base;
  }
  PythonValue sign(int depth) {
    PythonValue value = started();
    const std::string symbol = token().text;
    ++at_;
    if (depth < kMaxDepth) {
      const PythonValue operand = factor(depth + 1);
      const std::optional<double> number = number_of(operand);
      value.assumed = operand.assumed;
      if (number && (symbol == "-" || symbol == "+")) {
        value.kind = Kind::number;
        value.text = number_text(symbol == "-" ? -*number : *number);
      }
    }
    finish(value);
    return value;
  }

  void combine(PythonValue& left, const std::string& symbol, const PythonValue& right) {
    const std::optional<double> a = number_of(left), b = number_of(right);
    PythonValue value;
    value.line = left.line;
    value.begin = left.begin;
    if (a && b) {
      if (const auto result = compute(symbol, *a, *b)) {
        value.kind = Kind::number;
        value.text = number_text(*result);
      }
    } else if (symbol == "+" && left.kind == Kind::string && right.kind == Kind::string &&
               left.text.size() + right.text.size() < 8192) {
      value.kind = Kind::string;
      value.text = left.text + right.text;
    }
    finish(value);
    value.assumed = left.assumed || right.assumed;
    left = std::move(value);
  }

  PythonValue primary(int depth) {
    PythonValue value = started();
    if (depth >= kMaxDepth) return value;
    const PythonToken& here = token();
    if (here.kind == Token::string) {
      ++at_;
      if (!here.interpolated) value.kind = Kind::string;
      value.text = here.text;
      finish(value);
      return trailers(std::move(value), "", depth);
    }
    if (here.kind == Token::number) {
      ++at_;
      if (const auto number = real_number(here.text)) {
        value.kind = Kind::number;
        value.text = number_text(*number);
      }
      finish(value);
      return value;
    }
    if (is("[") || is("(") || is("{")) return trailers(bracket(depth), "", depth);
    return here.kind == Token::name ? name(depth) : value;
  }

  PythonValue name(int depth) {
    PythonValue value = started();
    const std::string text = token().text;
    ++at_;
    value.kind = text == "None" ? Kind::none : text == "True" || text == "False" ? Kind::boolean : Kind::name;
    value.text = text;
    finish(value);
    if (value.kind == Kind::name && !is(".") && !is("(") && !is("[")) {
      const auto constant = constants_.find(text);
      if (constant != constants_.end() && constant->second.kind != Kind::call) return used_at(value, constant->second);
      const auto parameter = parameters_.find(text);
      if (parameter != parameters_.end()) return used_at(value, parameter->second);
    }
    return trailers(std::move(value), text, depth);
  }

  // .attribute, (arguments) and [index] after a primary.
  PythonValue trailers(PythonValue value, std::string dotted, int depth) {
    while (true) {
      if (dotted.size() > 200) dotted.erase(0, dotted.size() - 200);
      if (is(".") && token(1).kind == Token::name) {
        dotted += "." + token(1).text;
        at_ += 2;
        value = PythonValue{Kind::name, dotted, {}, {}, value.line, value.begin, value.end};
        finish(value);
        value = with_default(value, dotted);
        if (value.assumed) return value;
      } else if (is("(")) {
        PythonCall call;
        call.line = value.line;
        call.begin = value.begin;
        call.callee = dotted;
        arguments(call, depth + 1);
        size_t total = 0;
        for (const auto& argument : call.arguments) total += weight(argument.value);
        value = PythonValue{Kind::call, dotted, {}, {}, value.line, value.begin, value.end};
        if (total < kMaxWeight) value.entries = call.arguments;
        if (call.callee.ends_with(".add_argument")) found_.note_argument(call);
        script_.calls.push_back(std::move(call));
        dotted.clear();
      } else if (is("[")) {
        bracket(depth + 1);
        value = PythonValue{Kind::unknown, {}, {}, {}, value.line, value.begin, value.end};
        dotted += "[]";
      } else {
        return value;
      }
      finish(value);
    }
  }

  // at_ is at "(".
  void arguments(PythonCall& call, int depth) {
    ++at_;
    while (at_ < tokens_.size() && !is(")")) {
      const size_t before = at_;
      if (is(",") || token().kind == Token::line_end) {
        ++at_;
        continue;
      }
      argument(call, depth);
      if (at_ == before || (!is(",") && !is(")"))) ++at_;
    }
    ++at_;
    if (!tokens_.empty()) call.end = tokens_[std::min(at_, tokens_.size()) - 1].end;
  }

  void argument(PythonCall& call, int depth) {
    std::string name;
    const bool unpacks = is("**");
    if (unpacks) ++at_;
    if (token().kind == Token::name && is(":", 1)) {  // a parameter with a type annotation
      name = token().text;
      at_ += 2;
      expression(depth);
      if (is("=")) ++at_;
    } else if (token().kind == Token::name && is("=", 1)) {
      name = token().text;
      at_ += 2;
    }
    PythonValue value = expression(depth);
    if (unpacks && value.kind == Kind::mapping) {
      for (auto& entry : value.entries) call.arguments.push_back(std::move(entry));
    } else if (!unpacks) {
      call.arguments.push_back({std::move(name), std::move(value)});
    }
  }

  // A list, tuple, set or dict; at_ is at its bracket.
  PythonValue bracket(int depth) {
    PythonValue value = started();
    const bool parenthesis = is("(");
    const std::string close = parenthesis ? ")" : is("[") ? "]" : "}";
    value.kind = close == "}" ? Kind::mapping : Kind::list;
    ++at_;
    bool comma = false;
    while (at_ < tokens_.size() && !is(close)) {
      const size_t before = at_;
      if (is(",")) {
        comma = true;
        ++at_;
        continue;
      }
      PythonValue item = depth < kMaxDepth ? expression(depth + 1) : PythonValue();
      if (is(":") && close == "}") {
        ++at_;
        PythonValue entry = depth < kMaxDepth ? expression(depth + 1) : PythonValue();
        if (item.kind == Kind::string) value.entries.push_back({item.text, std::move(entry)});
      } else {
        value.items.push_back(std::move(item));
      }
      if (at_ == before) ++at_;
    }
    ++at_;
    if (parenthesis && !comma && value.items.size() == 1) {
      PythonValue inner = std::move(value.items.front());
      inner.begin = value.begin;
      finish(inner);
      return inner;
    }
    finish(value);
    return value;
  }

  std::string_view text_;
  const std::vector<PythonToken>& tokens_;
  PythonToken past_end_;
  std::map<std::string, int> assigned_;
  std::map<std::string, PythonValue> constants_;
  std::map<std::string, PythonValue> parameters_;  // of the current function
  ScriptDefaults defaults_, found_;
  PythonScript script_;
  size_t at_ = 0;
};

}  // namespace

PythonScript read_python_calls(std::string_view text, const std::string& source) {
  const std::vector<PythonToken> tokens = tokenize_python(text, source);
  CallReader first(text, tokens, {});
  PythonScript script = first.read();
  ScriptDefaults defaults = first.take_defaults();
  if (defaults.empty()) return script;
  return CallReader(text, tokens, std::move(defaults)).read();  // options are often defined below their use
}

}  // namespace headroom::doctor
