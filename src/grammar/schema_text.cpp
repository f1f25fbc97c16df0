#include "grammar/schema_text.h"

#include <fmt/format.h>

#include <optional>

#include "grammar/expression.h"
#include "grammar/json_numbers.h"
#include "grammar/regular_expression.h"

namespace headroom {
namespace {

// Leap days are not accepted: whether one is valid depends on the year.
constexpr const char* kDate =
    R"([1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))";
constexpr const char* kTime = R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";

std::optional<std::string> format_expression(std::string_view format) {
  if (format == "date") return kDate;
  if (format == "time") return kTime;
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "uuid") return R"([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})";
  if (format == "ipv4") return R"(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  if (format == "email")
    return R"([A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,16}){0,3}@([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?\.){1,4}[A-Za-z]{2,12})";
  return std::nullopt;
}

GrammarStateId matching_string(SchemaRules& rules, const std::string& expression, const std::string& source,
                               bool whole) {
  AutomatonBuilder& builder = rules.builder();
  const ExpressionPointer parsed = parse_regular_expression(expression, source, whole, builder);
  builder.at(source);
  const GrammarStateId close = builder.literal("\"", AutomatonBuilder::end());
  return builder.literal("\"", ExpressionStates(builder, CharacterSpelling::json).of(*parsed, close));
}

std::string text_of(SchemaRules& rules, const OrderedJson& schema, const char* keyword) {
  if (!schema.at(keyword).is_string()) rules.builder().refuse(fmt::format("{} is not a text", keyword));
  return schema.at(keyword).get<std::string>();
}

std::optional<NumberBound> bound_of(SchemaRules& rules, const OrderedJson& schema, const char* inclusive,
                                    const char* exclusive, bool lower) {
  std::optional<NumberBound> found;
  for (const char* keyword : {inclusive, exclusive}) {
    if (!schema.contains(keyword)) continue;
    const OrderedJson& value = schema.at(keyword);
    if (value.is_boolean() && keyword == exclusive) {  // draft 4: refers to the other keyword
      if (found) found->exclusive = value.get<bool>();
      continue;
    }
    if (!value.is_number()) rules.builder().refuse(fmt::format("{} is not a number", keyword));
    const std::optional<Decimal> decimal = Decimal::of(value);
    if (!decimal) rules.builder().refuse(fmt::format("{} is too large or has too many digits", keyword));
    if (found) {
      const OrderedJson& other = schema.at(inclusive);
      if (lower ? other > value : other < value) continue;
    }
    found = NumberBound{*decimal, keyword == exclusive};
  }
  return found;
}

}  // namespace

GrammarStateId schema_string_states(SchemaRules& rules, const OrderedJson& schema) {
  AutomatonBuilder& builder = rules.builder();
  const bool counted = schema.contains("minLength") || schema.contains("maxLength");
  std::optional<std::string> format;
  if (schema.contains("format")) {
    const std::string name = text_of(rules, schema, "format");
    format = format_expression(name);
    if (!format) rules.note(fmt::format("format \"{}\" is not enforced", name));
  }
  const bool patterned = schema.contains("pattern");
  if ((format ? 1 : 0) + (patterned ? 1 : 0) + (counted ? 1 : 0) > 1)
    builder.refuse("only one of pattern, format and lengths is supported",
                   "put all of it in the pattern: ^[a-z]{1,8}$");
  if (format) return matching_string(rules, *format, builder.place() + "/format", true);
  if (patterned) return matching_string(rules, text_of(rules, schema, "pattern"), builder.place() + "/pattern", false);
  if (!counted) return builder.call(rules.values().string(), AutomatonBuilder::end());
  const int64_t least = rules.count_of(schema, "minLength", 0);
  std::optional<int64_t> most;
  if (schema.contains("maxLength")) most = rules.count_of(schema, "maxLength", 0);
  if (most && least > *most)
    builder.refuse(fmt::format("a string of at least {} characters has at most {}", least, *most));
  return rules.values().string_of_length(least, most, AutomatonBuilder::end());
}

GrammarStateId schema_number_states(SchemaRules& rules, const OrderedJson& schema, bool integer) {
  AutomatonBuilder& builder = rules.builder();
  if (schema.contains("multipleOf") && !(integer && schema.at("multipleOf") == 1))
    builder.refuse("multipleOf is not supported", "leave it out, and check the result");
  NumberRange range;
  range.least = bound_of(rules, schema, "minimum", "exclusiveMinimum", true);
  range.most = bound_of(rules, schema, "maximum", "exclusiveMaximum", false);
  if (range.least || range.most)
    return number_between(builder, range, integer ? 0 : JsonValues::kFractionDigits, AutomatonBuilder::end());
  return builder.call(integer ? rules.values().integer() : rules.values().number(), AutomatonBuilder::end());
}

}  // namespace headroom
