#include "grammar/regular_expression.h"

#include <fmt/format.h>

#include "base/error.h"
#include "grammar/expression_reader.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

CodePointSet digit_characters() { return {'0', '9'}; }

CodePointSet word_characters() {
  CodePointSet set('a', 'z');
  set.add('A', 'Z');
  set.add('0', '9');
  set.add('_');
  return set;
}

CodePointSet space_characters() {
  CodePointSet set('\t', '\r');
  set.add(' ');
  return set;
}

CodePointSet all_but_line_ends() {
  CodePointSet set(U'\n');
  set.add('\r');
  return set.complement();
}

class RegularExpressionParser {
 public:
  RegularExpressionParser(std::string_view text, const std::string& source, bool whole, AutomatonBuilder& builder)
      : reader_(text, builder), source_(source), whole_(whole) {}

  ExpressionPointer parse() {
    ExpressionPointer all = alternatives();
    if (!reader_.ended()) refuse("a ) without its (");
    return all;
  }

 private:
  [[noreturn]] void refuse(std::string_view problem) {
    place();
    reader_.refuse(problem);
  }
  void place() { reader_.builder().at(fmt::format("{}: byte {}", source_, reader_.offset())); }

  ExpressionPointer alternatives() {
    const NestedGroup group(depth_, reader_.builder());
    std::vector<ExpressionPointer> found;
    do found.push_back(alternative());
    while (reader_.take_if('|'));
    return joined_expression(Expression::Kind::alternatives, std::move(found));
  }

  ExpressionPointer alternative() {
    const bool outermost = depth_ == 1;
    std::vector<ExpressionPointer> parts;
    bool begins = false, ends = false;
    place();
    if (outermost && reader_.take_if('^')) begins = true;
    while (!reader_.ended() && reader_.peek() != '|' && reader_.peek() != ')') {
      place();
      if (outermost && at_final_dollar()) {
        reader_.take();
        ends = true;
        break;
      }
      parts.push_back(repeated(atom()));
    }
    if (outermost && !whole_ && !begins) parts.insert(parts.begin(), anything());
    if (outermost && !whole_ && !ends) parts.push_back(anything());
    return joined_expression(Expression::Kind::sequence, std::move(parts));
  }

  static ExpressionPointer anything() {
    return repeat_expression(characters_expression({0, CodePointSet::kLast}), 0, Expression::kUnbounded);
  }

  bool at_final_dollar() const { return reader_.peek() == '$' && (reader_.starts("$|") || reader_.at_last()); }

  ExpressionPointer repeated(ExpressionPointer expression) {
    if (!reader_.at_repetition()) return expression;
    expression = reader_.repeated(std::move(expression));
    reader_.take_if('?');  // lazy: the same texts match
    if (reader_.at_repetition()) refuse("a repetition of a repetition; put a group around the first");
    return expression;
  }

  ExpressionPointer atom() {
    const char32_t code = reader_.take();
    switch (code) {
      case '(':
        return group();
      case '[':
        return characters_expression(bracketed());
      case '.':
        return characters_expression(all_but_line_ends());
      case '\\':
        return characters_expression(escape(false));
      case '^':
      case '$':
        refuse("^ and $ are supported at the ends of the expression and of its outermost alternatives only");
      case '*':
      case '+':
      case '?':
        refuse("a repetition of nothing");
      case '{':
        refuse("escape a literal { with a backslash");
      default:
        return characters_expression({code, code});
    }
  }

  ExpressionPointer group() {
    if (reader_.take_if('?') && !reader_.take_if(':')) refuse("the only supported group with (? is (?:...)");
    ExpressionPointer inside = alternatives();
    if (!reader_.take_if(')')) refuse("a ( without its )");
    return inside;
  }

  // After a backslash.
  CodePointSet escape(bool in_brackets) {
    const char32_t code = reader_.take();
    switch (code) {
      case 'd':
        return digit_characters();
      case 'D':
        return digit_characters().complement();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().complement();
      case 's':
        return space_characters();
      case 'S':
        return space_characters().complement();
      default:
        break;
    }
    const char32_t one = escaped_character(code, in_brackets);
    return {one, one};
  }

  char32_t escaped_character(char32_t code, bool in_brackets) {
    switch (code) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return reader_.hex_character(2);
      case 'u':
        return reader_.hex_character(4);
      default:
        break;
    }
    if (code == 'b' && in_brackets) return '\b';
    const bool letter = (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
    if (letter || (code >= '0' && code <= '9')) {
      std::string name;
      append_utf8(code, name);
      refuse(fmt::format("\\{} is not supported", name));
    }
    return code;
  }

  CodePointSet bracketed() {
    const bool negated = reader_.take_if('^');
    CodePointSet set;
    while (!reader_.take_if(']')) {
      place();
      CodePointSet first = bracketed_item();
      const bool one =
          !first.empty() && first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
      if (!one || reader_.peek() != '-' || reader_.starts("-]")) {
        set.add(first);
        continue;
      }
      reader_.take();
      const CodePointSet last = bracketed_item();
      if (last.ranges().size() != 1 || last.ranges()[0].first != last.ranges()[0].last)
        refuse("a range of a class needs a character at each end");
      if (last.ranges()[0].first < first.ranges()[0].first) refuse("a range of a class goes backwards");
      set.add(first.ranges()[0].first, last.ranges()[0].first);
    }
    if (negated) set = set.complement();
    if (set.empty()) refuse("a class without characters");
    return set;
  }

  CodePointSet bracketed_item() {
    const char32_t code = reader_.take();
    if (code == '\\') return escape(true);
    return {code, code};
  }

  ExpressionReader reader_;
  const std::string& source_;
  bool whole_;
  int64_t depth_ = 0;
};

}  // namespace

ExpressionPointer parse_regular_expression(std::string_view text, const std::string& source, bool whole,
                                           AutomatonBuilder& builder) {
  builder.at(source);
  if (static_cast<int64_t>(text.size()) > builder.limits().source_bytes)
    builder.refuse(fmt::format("the expression has more than {} bytes", builder.limits().source_bytes));
  if (check_utf8(text).valid != text.size()) builder.refuse("the expression is not UTF-8");
  return RegularExpressionParser(text, source, whole, builder).parse();
}

}  // namespace headroom
