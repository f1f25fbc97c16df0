#include "grammar/ebnf.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/expression_reader.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

bool is_name_character(char32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') || code == '-' ||
         code == '_';
}

class EbnfParser {
 public:
  EbnfParser(std::string_view text, const std::string& source, AutomatonBuilder& builder)
      : text_(text),
        source_(source),
        reader_(text, builder),
        builder_(builder),
        states_(builder, CharacterSpelling::plain) {
    rule("root").line = 0;
  }

  void parse() {
    for (skip_blanks(); !reader_.ended(); skip_blanks()) {
      place();
      const int64_t line = line_;
      const std::string name = take_name();
      skip_blanks();
      if (name.empty() || !reader_.starts("::=")) refuse("a rule begins with name ::=");
      reader_.skip(3);
      Rule& defined = rule(name);
      if (defined.is_defined) refuse(fmt::format("rule '{}' is defined twice", name));
      defined.is_defined = true;
      defined.line = line;
      builder_.rename(defined.id, fmt::format("{}: line {}: rule '{}'", source_, line, name));
      const ExpressionPointer expression = alternatives();
      place();
      builder_.define(defined.id, states_.of(*expression, AutomatonBuilder::end()));
      if (reader_.peek() == ')') refuse("a ) without its (");
    }
    check_defined();
  }

 private:
  struct Rule {
    GrammarRuleId id = 0;
    int64_t line = 0;  // of its definition; of its first use until it is defined
    bool is_defined = false;
  };

  void place() { builder_.at(fmt::format("{}: line {}", source_, line_)); }
  [[noreturn]] void refuse(std::string_view problem) {
    place();
    builder_.refuse(problem);
  }

  Rule& rule(const std::string& name) {
    const auto [found, added] = rules_.try_emplace(name);
    if (added) found->second = {builder_.declare(fmt::format("{}: rule '{}'", source_, name)), line_, false};
    return found->second;
  }

  void check_defined() {
    for (const auto& [name, rule] : rules_) {
      if (rule.is_defined) continue;
      if (name == "root") {
        builder_.at(source_);
        builder_.refuse("there is no rule 'root'", "begin with: root ::= ...");
      }
      line_ = rule.line;
      refuse(fmt::format("rule '{}' is not defined", name));
    }
  }

  void skip_blanks() {
    while (!reader_.ended()) {
      const char32_t next = reader_.peek();
      if (next == '#') {
        while (!reader_.ended() && reader_.peek() != '\n') reader_.take();
      } else if (next == ' ' || next == '\t' || next == '\r' || next == '\n') {
        line_ += next == '\n';
        reader_.take();
      } else {
        return;
      }
    }
  }

  std::string take_name() {
    std::string name;
    while (is_name_character(reader_.peek())) name.push_back(static_cast<char>(reader_.take()));
    if (name.size() > 256) refuse("a name has more than 256 characters");
    return name;
  }

  // Whether a rule's definition begins here.
  bool at_definition() const {
    size_t at = reader_.offset();
    while (at < text_.size() && is_name_character(static_cast<unsigned char>(text_[at]))) ++at;
    if (at == reader_.offset()) return false;
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    return text_.substr(at).starts_with("::=");
  }

  ExpressionPointer alternatives() {
    const NestedGroup group(depth_, builder_);
    std::vector<ExpressionPointer> found;
    do found.push_back(sequence());
    while (reader_.take_if('|'));
    return joined_expression(Expression::Kind::alternatives, std::move(found));
  }

  ExpressionPointer sequence() {
    std::vector<ExpressionPointer> parts;
    for (skip_blanks(); !reader_.ended(); skip_blanks()) {
      place();
      if (reader_.peek() == '|' || reader_.peek() == ')' || at_definition()) break;
      ExpressionPointer part = item();
      part = reader_.repeated(std::move(part));
      if (reader_.at_repetition()) refuse("a repetition of a repetition; put a group around the first");
      parts.push_back(std::move(part));
    }
    return joined_expression(Expression::Kind::sequence, std::move(parts));
  }

  ExpressionPointer item() {
    if (is_name_character(reader_.peek())) {
      auto call = std::make_unique<Expression>();
      call->kind = Expression::Kind::call;
      call->rule = rule(take_name()).id;
      return call;
    }
    const char32_t code = reader_.take();
    if (code == '"') return literal();
    if (code == '[') return characters_expression(bracketed());
    if (code == '.') return characters_expression({0, CodePointSet::kLast});
    if (code != '(') refuse("neither a literal, a class, a name nor a group");
    ExpressionPointer inside = alternatives();
    if (!reader_.take_if(')')) refuse("a ( without its )");
    return inside;
  }

  ExpressionPointer literal() {
    std::vector<ExpressionPointer> parts;
    while (!reader_.take_if('"')) {
      const char32_t code = character();
      parts.push_back(characters_expression({code, code}));
    }
    return joined_expression(Expression::Kind::sequence, std::move(parts));
  }

  char32_t character() {
    const char32_t code = reader_.take();
    if (code == '\n') refuse("a literal or class ends with its line; a line end is \\n");
    if (code != '\\') return code;
    const char32_t escaped = reader_.take();
    switch (escaped) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return reader_.hex_character(2);
      case 'u':
        return reader_.hex_character(4);
      case 'U':
        return reader_.hex_character(8);
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^':
        return escaped;
      default:
        refuse("an escape that GBNF does not have");
    }
  }

  CodePointSet bracketed() {
    const bool negated = reader_.take_if('^');
    CodePointSet set;
    while (!reader_.take_if(']')) {
      const char32_t first = character();
      char32_t last = first;
      if (reader_.peek() == '-' && !reader_.starts("-]")) {
        reader_.take();
        last = character();
      }
      if (last < first) refuse("a range of a class goes backwards");
      set.add(first, last);
    }
    if (negated) set = set.complement();
    if (set.empty()) refuse("a class without characters");
    return set;
  }

  std::string_view text_;
  const std::string& source_;
  ExpressionReader reader_;
  AutomatonBuilder& builder_;
  ExpressionStates states_;
  std::map<std::string, Rule> rules_;
  int64_t line_ = 1, depth_ = 0;
};

}  // namespace

void add_ebnf(std::string_view text, const std::string& source, AutomatonBuilder& builder) {
  builder.at(source);
  if (static_cast<int64_t>(text.size()) > builder.limits().source_bytes)
    builder.refuse(fmt::format("the grammar has more than {} bytes", builder.limits().source_bytes));
  if (check_utf8(text).valid != text.size()) builder.refuse("the grammar is not UTF-8");
  EbnfParser(text, source, builder).parse();
}

}  // namespace headroom
