#include "grammar/expression_reader.h"

#include <fmt/format.h>

#include "tokenizer/utf8.h"

namespace headroom {

char32_t ExpressionReader::peek() const { return ended() ? 0 : decode_utf8(text_, at_).code; }

char32_t ExpressionReader::take() {
  if (ended()) refuse("it ends too early");
  const Utf8Char next = decode_utf8(text_, at_);
  at_ += next.bytes;
  return next.code;
}

bool ExpressionReader::take_if(char32_t code) {
  if (ended() || peek() != code) return false;
  take();
  return true;
}

char32_t ExpressionReader::hex_character(int digits) {
  char32_t code = 0;
  for (int i = 0; i < digits; ++i) {
    const char32_t digit = take();
    if (digit >= '0' && digit <= '9')
      code = code * 16 + (digit - '0');
    else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
      code = code * 16 + ((digit | 0x20) - 'a' + 10);
    else
      refuse(fmt::format("an escape of {} hexadecimal digits has other characters", digits));
  }
  if (code > CodePointSet::kLast || (code >= 0xD800 && code <= 0xDFFF))
    refuse(fmt::format("U+{:04X} is not a character", static_cast<uint32_t>(code)));
  return code;
}

bool ExpressionReader::at_repetition() const {
  const char32_t next = peek();
  return next == '*' || next == '+' || next == '?' || next == '{';
}

int64_t ExpressionReader::number() {
  if (peek() < '0' || peek() > '9') refuse("a repetition in braces must be {n}, {n,} or {n,m}");
  int64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = value * 10 + static_cast<int64_t>(take() - '0');
    if (value > kMostRepetitions) refuse(fmt::format("a repetition counts to more than {}", kMostRepetitions));
  }
  return value;
}

ExpressionPointer ExpressionReader::repeated(ExpressionPointer expression) {
  if (!at_repetition()) return expression;
  const char32_t mark = take();
  int64_t least = mark == '+' ? 1 : 0, most = mark == '?' ? 1 : Expression::kUnbounded;
  if (mark == '{') {
    least = most = number();
    if (take_if(',')) most = peek() == '}' ? Expression::kUnbounded : number();
    if (!take_if('}')) refuse("a repetition lacks its }");
    if (most != Expression::kUnbounded && most < least)
      refuse(fmt::format("the repetition {{{},{}}} has no count", least, most));
  }
  return repeat_expression(std::move(expression), least, most);
}

NestedGroup::NestedGroup(int64_t& depth, const AutomatonBuilder& builder) : depth_(depth) {
  if (depth >= builder.limits().nesting)
    builder.refuse(fmt::format("groups nest deeper than {}", builder.limits().nesting));
  ++depth_;
}

}  // namespace headroom
