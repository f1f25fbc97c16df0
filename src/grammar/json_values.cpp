#include "grammar/json_values.h"

#include <algorithm>

#include "base/error.h"
#include "grammar/expression.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr GrammarStateId kEndOfRule = PushdownAutomaton::kEnd;

// The characters that are not escaped in a string.
CodePointSet plain_characters() {
  CodePointSet set(0x20, CodePointSet::kLast);
  CodePointSet marks(U'"');
  marks.add('\\');
  return set.without(marks);
}

ByteSet hex_digits() {
  ByteSet set = ByteSet::range('0', '9');
  set.add(ByteSet::range('a', 'f'));
  set.add(ByteSet::range('A', 'F'));
  return set;
}

ByteSet bytes_of(std::string_view text) {
  ByteSet set;
  for (const char c : text) set.add(static_cast<uint8_t>(c));
  return set;
}

std::u32string code_points_of(const std::string& text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    out.push_back(next.code);
    at += next.bytes;
  }
  return out;
}

}  // namespace

template <typename Make>
GrammarRuleId JsonValues::shared(const std::string& name, const Make& make) {
  if (const auto found = rules_.find(name); found != rules_.end()) return found->second;
  const GrammarRuleId rule = builder_.declare(builder_.place());
  rules_[name] = rule;
  builder_.define(rule, make());
  return rule;
}

GrammarStateId JsonValues::space(GrammarStateId next) { return builder_.either(builder_.literal(" ", next), next); }

GrammarStateId JsonValues::member(const std::string& name, GrammarStateId next) {
  return builder_.literal("\"" + json_spelling(name) + "\":", space(next));
}

GrammarStateId JsonValues::digits(int64_t least, int64_t most, GrammarStateId next) {
  GrammarStateId state = next;
  for (int64_t n = least; n < most; ++n) state = builder_.either(builder_.bytes(ByteSet::range('0', '9'), state), next);
  for (int64_t n = 0; n < least; ++n) state = builder_.bytes(ByteSet::range('0', '9'), state);
  return state;
}

GrammarRuleId JsonValues::character() {
  return shared("character", [&] {
    const ByteSet hex = hex_digits();
    const auto four = [&](std::string_view second, GrammarStateId next) {  // D800 to DBFF, or DC00 to DFFF
      const GrammarStateId tail = builder_.bytes(hex, builder_.bytes(hex, next));
      return builder_.bytes(bytes_of("dD"), builder_.bytes(bytes_of(second), tail));
    };
    const GrammarStateId tail = builder_.bytes(hex, builder_.bytes(hex, kEndOfRule));
    ByteSet others = hex;
    others.words[1] &= ~bytes_of("dD").words[1];
    const GrammarStateId plain =
        builder_.either(builder_.bytes(others, builder_.bytes(hex, tail)),
                        builder_.bytes(bytes_of("dD"), builder_.bytes(ByteSet::range('0', '7'), tail)));
    const GrammarStateId pair = four("89abAB", builder_.literal("\\u", four("cdefCDEF", kEndOfRule)));
    const GrammarStateId numbered = builder_.literal("u", builder_.either(plain, pair));
    const GrammarStateId escape = builder_.either(builder_.bytes(bytes_of("\"\\/bfnrt"), kEndOfRule), numbered);
    return builder_.either(builder_.code_points(plain_characters(), kEndOfRule), builder_.literal("\\", escape));
  });
}

GrammarRuleId JsonValues::string() {
  return shared("string", [&] { return string_of_length(0, std::nullopt, kEndOfRule); });
}

GrammarStateId JsonValues::string_of_length(int64_t least, std::optional<int64_t> most, GrammarStateId next) {
  const GrammarStateId close = builder_.literal("\"", next);
  GrammarStateId state = close;
  if (!most) {
    state = builder_.open_loop();
    builder_.close_loop(state, builder_.call(character(), state), close);
  } else {
    for (int64_t n = least; n < *most; ++n) state = builder_.either(builder_.call(character(), state), close);
  }
  for (int64_t n = 0; n < least; ++n) state = builder_.call(character(), state);
  return builder_.literal("\"", state);
}

GrammarStateId JsonValues::integer_part(GrammarStateId next) {
  const GrammarStateId some = builder_.bytes(ByteSet::range('1', '9'), digits(0, kIntegerDigits - 1, next));
  return builder_.either(builder_.literal("0", next), some);
}

GrammarRuleId JsonValues::integer() {
  return shared("integer", [&] {
    const GrammarStateId some = builder_.bytes(ByteSet::range('1', '9'), digits(0, kIntegerDigits - 1, kEndOfRule));
    return builder_.any_of({builder_.literal("0", kEndOfRule), some, builder_.literal("-", some)});
  });
}

GrammarRuleId JsonValues::number() {
  return shared("number", [&] {
    const GrammarStateId power = digits(1, 2, kEndOfRule);
    const GrammarStateId sign = builder_.either(builder_.bytes(bytes_of("+-"), power), power);
    const GrammarStateId exponent = builder_.either(builder_.bytes(bytes_of("eE"), sign), kEndOfRule);
    const GrammarStateId fraction = builder_.literal(".", digits(1, kFractionDigits, exponent));
    const GrammarStateId number = integer_part(builder_.either(fraction, exponent));
    return builder_.either(number, builder_.literal("-", number));
  });
}

GrammarRuleId JsonValues::value(int depth) {
  return shared(fmt::format("value {}", depth), [&] {
    std::vector<GrammarStateId> kinds{builder_.call(string(), kEndOfRule), builder_.call(number(), kEndOfRule)};
    for (const char* word : {"true", "false", "null"}) kinds.push_back(builder_.literal(word, kEndOfRule));
    if (depth > 0) {
      kinds.push_back(builder_.call(object(depth), kEndOfRule));
      kinds.push_back(builder_.call(array(depth), kEndOfRule));
    }
    return builder_.any_of(kinds);
  });
}

GrammarRuleId JsonValues::object(int depth) {
  return shared(fmt::format("object {}", depth), [&] {
    const GrammarStateId close = builder_.literal("}", kEndOfRule);
    const GrammarStateId behind = builder_.open_loop();
    const GrammarStateId value_state = builder_.call(value(depth - 1), behind);
    const GrammarStateId member_state = builder_.call(string(), builder_.literal(":", space(value_state)));
    builder_.close_loop(behind, builder_.literal(",", space(member_state)), space(close));
    return builder_.literal("{", space(builder_.either(member_state, close)));
  });
}

GrammarRuleId JsonValues::array(int depth) {
  return shared(fmt::format("array {}", depth), [&] {
    const GrammarStateId close = builder_.literal("]", kEndOfRule);
    const GrammarStateId behind = builder_.open_loop();
    const GrammarStateId element = builder_.call(value(depth - 1), behind);
    builder_.close_loop(behind, builder_.literal(",", space(element)), space(close));
    return builder_.literal("[", space(builder_.either(element, close)));
  });
}

GrammarRuleId JsonValues::key_other_than(const std::set<std::string>& names) {
  std::set<std::u32string> spelled;
  for (const std::string& name : names) {
    if (json_spelling(name) != name) continue;  // never written without an escape
    if (name.size() > 256)
      builder_.refuse("a property's name has more than 256 bytes, which is not supported beside additionalProperties");
    spelled.insert(code_points_of(name));
  }
  const GrammarRuleId rule = builder_.declare(builder_.place());
  const GrammarStateId rest = builder_.open_loop();
  builder_.close_loop(rest, builder_.code_points(plain_characters(), rest), builder_.literal("\"", kEndOfRule));
  builder_.define(rule, builder_.literal("\"", key_from(spelled, 0, rest)));
  return rule;
}

// After `at` characters with which all of `names` begin.
GrammarStateId JsonValues::key_from(const std::set<std::u32string>& names, size_t at, GrammarStateId rest) {
  builder_.step();
  CodePointSet others = plain_characters();
  std::vector<GrammarStateId> alternatives;
  bool is_name = false;
  for (auto first = names.begin(); first != names.end();) {
    if (first->size() == at) {
      is_name = true;
      ++first;
      continue;
    }
    const char32_t code = (*first)[at];
    std::set<std::u32string> alike;
    for (; first != names.end() && (*first)[at] == code; ++first) alike.insert(*first);
    others = others.without(CodePointSet(code));
    alternatives.push_back(builder_.code_points(CodePointSet(code), key_from(alike, at + 1, rest)));
  }
  alternatives.push_back(builder_.code_points(others, rest));
  if (!is_name) alternatives.push_back(builder_.literal("\"", kEndOfRule));
  return builder_.any_of(alternatives);
}

GrammarStateId JsonValues::given(const OrderedJson& value, GrammarStateId next) {
  builder_.step();
  if (value.is_string()) return builder_.literal("\"" + json_spelling(value.get<std::string>()) + "\"", next);
  if (!value.is_structured()) return builder_.literal(value.dump(), next);
  const bool object = value.is_object();
  if (value.empty()) return builder_.literal(object ? "{" : "[", space(builder_.literal(object ? "}" : "]", next)));
  GrammarStateId state = space(builder_.literal(object ? "}" : "]", next));
  std::vector<std::pair<std::string, const OrderedJson*>> parts;
  for (const auto& item : value.items()) parts.emplace_back(item.key(), &item.value());
  for (size_t i = parts.size(); i > 0; --i) {
    state = given(*parts[i - 1].second, state);
    if (object) state = member(parts[i - 1].first, state);
    if (i > 1) state = builder_.literal(",", space(state));
  }
  return builder_.literal(object ? "{" : "[", space(state));
}

GrammarStateId JsonValues::one_of(const std::vector<OrderedJson>& values, GrammarStateId next) {
  std::set<std::string> texts;
  std::vector<GrammarStateId> alternatives;
  for (const OrderedJson& value : values) {
    if (value.is_structured())
      alternatives.push_back(given(value, next));
    else
      texts.insert(value.is_string() ? "\"" + json_spelling(value.get<std::string>()) + "\"" : value.dump());
  }
  if (!texts.empty()) alternatives.push_back(builder_.one_of({texts.begin(), texts.end()}, next));
  return builder_.any_of(alternatives);
}

}  // namespace headroom
