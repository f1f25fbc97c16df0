#include "jinja/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/interpreter.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

constexpr const char* kRemedy =
    "docs/chat_templates.md lists what is supported; render the conversations into {\"prompt\",\"completion\"} rows "
    "otherwise";
constexpr const char* kLimitRemedy = "shorten the conversation, or render it into a {\"prompt\",\"completion\"} row";

bool has_generation(const Body& body) {
  return std::any_of(body.begin(), body.end(), [](const Statement& statement) {
    if (statement.kind == StatementKind::generation) return true;
    if (has_generation(statement.body) || has_generation(statement.otherwise)) return true;
    if (statement.macro != nullptr && has_generation(statement.macro->body)) return true;
    return std::any_of(statement.branches.begin(), statement.branches.end(),
                       [](const Branch& branch) { return has_generation(branch.body); });
  });
}

[[noreturn]] void report(const Problem& problem, const std::string& source, int line) {
  std::string place = fmt::format("{}:{}: ", source, line);
  if (problem.kind == Problem::Kind::raised)
    throw Refusal(place + "the template refuses the conversation: " + problem.text, problem.text);
  throw Error(ErrorKind::format, place + problem.text, problem.kind == Problem::Kind::limit ? kLimitRemedy : kRemedy);
}

}  // namespace

struct Template::Data {
  std::string source;
  Body body;
  bool marks_generations = false;
};

Template Template::parse(std::string_view utf8, std::string source, const Limits& limits) {
  if (static_cast<int64_t>(utf8.size()) > limits.template_bytes)
    throw Error(
        ErrorKind::format,
        fmt::format("{}: a template of {} bytes, at most {} are supported", source, utf8.size(), limits.template_bytes),
        kRemedy);
  auto data = std::make_shared<Data>();
  data->source = std::move(source);
  try {
    data->body = jinja::parse(utf8);
  } catch (const ProblemAt& problem) {
    throw Error(ErrorKind::format, fmt::format("{}:{}: {}", data->source, problem.line, problem.text), kRemedy);
  }
  data->marks_generations = has_generation(data->body);
  return Template(std::move(data));
}

Rendered Template::render(const Dict& variables, const std::tm& now, Budget& budget) const {
  Interpreter interpreter(variables, now, budget);
  try {
    return interpreter.run(data_->body);
  } catch (const Problem& problem) {
    report(problem, data_->source, interpreter.line());
  }
}

bool Template::marks_generations() const { return data_->marks_generations; }

const std::string& Template::source() const { return data_->source; }

}  // namespace headroom::jinja
