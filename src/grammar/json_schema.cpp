#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "grammar/schema_object.h"
#include "grammar/schema_rules.h"
#include "grammar/schema_text.h"

namespace headroom {

SchemaRules::SchemaRules(SchemaPart root, std::string source, AutomatonBuilder& builder,
                         std::vector<std::string>& notes)
    : builder_(builder),
      source_(std::move(source)),
      root_(root),
      merge_(*root, builder),
      values_(builder),
      notes_(notes) {
  rule_of("", std::move(root));
}

void SchemaRules::place(const std::string& pointer) {
  builder_.at(fmt::format("{}: {}", source_, pointer.empty() ? "the whole schema" : pointer));
}

GrammarRuleId SchemaRules::rule_of(const std::string& pointer, SchemaPart schema) {
  constexpr size_t kLongestPointer = 1024;
  if (pointer.size() > kLongestPointer)
    builder_.refuse(fmt::format("a place of the schema is named by more than {} characters", kLongestPointer),
                    "nest it less; $ref beside other keywords makes a new schema each time");
  if (const auto found = rules_.find(pointer); found != rules_.end()) return found->second;
  place(pointer);
  if ((place_bytes_ += static_cast<int64_t>(pointer.size())) > builder_.limits().place_bytes)
    builder_.refuse(
        fmt::format("the places of the schema have names of more than {} bytes", builder_.limits().place_bytes),
        "make it smaller, or nest it less");
  const GrammarRuleId rule = builder_.declare(builder_.place());
  rules_.emplace(pointer, rule);
  waiting_.push_back({rule, pointer, std::move(schema)});
  return rule;
}

GrammarRuleId SchemaRules::rule_of_merged(const std::string& pointer, OrderedJson schema) {
  merge_.count(schema);
  return rule_of(pointer, std::make_shared<const OrderedJson>(std::move(schema)));
}

void SchemaRules::make() {
  while (!waiting_.empty()) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    place(next.pointer);
    const GrammarStateId state = states_of(next);
    builder_.define(next.rule, state);
  }
}

// Schemas that are references call the rule of their target; others are flattened, with separate positions for their
// parts, which may differ from the schema's own.
GrammarStateId SchemaRules::states_of(const Waiting& waiting) {
  const OrderedJson& schema = *waiting.schema;
  constexpr GrammarStateId end = AutomatonBuilder::end();
  if (schema == false) return builder_.any_of({});
  if (schema == true) return builder_.call(values_.value(JsonValues::kDepth), end);
  if (!schema.is_object()) builder_.refuse("a schema is an object, true or false");
  std::vector<std::string> said;
  for (const auto& item : schema.items())
    if (!is_annotation(item.key())) said.push_back(item.key());
  if (said.size() == 1 && said[0] == "$ref") {
    const OrderedJson& target = merge_.target(schema.at("$ref"));
    return builder_.call(rule_of(schema.at("$ref").get<std::string>().substr(1), {root_, &target}), end);
  }
  const bool joined = schema.contains("$ref") || schema.contains("allOf");
  if (joined && !schema.contains("anyOf") && said.size() == 1 && schema.at("allOf").is_array() &&
      schema.at("allOf").size() == 1)
    return builder_.call(rule_of(waiting.pointer + "/allOf/0", {waiting.schema, &schema.at("allOf")[0]}), end);
  const SchemaPart flat = joined ? std::make_shared<const OrderedJson>(merge_.flat(schema)) : waiting.schema;
  const std::string pointer = joined ? waiting.pointer + "~joined" : waiting.pointer;
  for (const char* keyword : {"anyOf", "oneOf"})
    if (flat->contains(keyword)) return builder_.any_of(alternatives(*flat, keyword, flat, pointer));
  return plain_states({flat, pointer});
}

// Each alternative, merged with the schema's other keywords.
std::vector<GrammarStateId> SchemaRules::alternatives(const OrderedJson& schema, const std::string& keyword,
                                                      const SchemaPart& owner, const std::string& pointer) {
  const OrderedJson& list = schema.at(keyword);
  if (!list.is_array() || list.empty()) builder_.refuse(fmt::format("{} is not a list of schemas", keyword));
  OrderedJson beside = OrderedJson::object();
  for (const auto& item : schema.items())
    if (item.key() != keyword && !is_annotation(item.key())) beside[item.key()] = item.value();
  std::vector<GrammarStateId> states;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place_of_one = fmt::format("{}/{}/{}", pointer, keyword, i);
    const GrammarRuleId rule = beside.empty()
                                   ? rule_of(place_of_one, {owner, &list[i]})
                                   : rule_of_merged(place_of_one, {{"allOf", OrderedJson::array({beside, list[i]})}});
    states.push_back(builder_.call(rule, AutomatonBuilder::end()));
  }
  place(pointer);
  return states;
}

namespace {

// The enforced keywords, by the type of value to which they apply.
struct TypeKeyword {
  std::string_view type;
  std::string_view keyword;
};

constexpr TypeKeyword kTypeKeywords[] = {
    {"object", "properties"},    {"object", "required"},         {"object", "additionalProperties"},
    {"object", "minProperties"}, {"object", "maxProperties"},    {"array", "items"},
    {"array", "prefixItems"},    {"array", "additionalItems"},   {"array", "minItems"},
    {"array", "maxItems"},       {"string", "minLength"},        {"string", "maxLength"},
    {"string", "pattern"},       {"string", "format"},           {"number", "minimum"},
    {"number", "maximum"},       {"number", "exclusiveMinimum"}, {"number", "exclusiveMaximum"},
    {"number", "multipleOf"}};

bool is_type(const std::string& type) {
  constexpr std::string_view kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

bool has_type(const OrderedJson& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return value.is_number_integer() || (type == "number" && value.is_number());
}

}  // namespace

// The types that a schema names or, without any, those to which its keywords apply; none: every value.
std::vector<std::string> SchemaRules::types_of(const OrderedJson& schema) {
  std::vector<std::string> types = schema_types(schema);
  if (schema.contains("type")) {
    const size_t said = schema.at("type").is_array() ? schema.at("type").size() : 1;
    if (types.size() != said) builder_.refuse("type is not a text or a list of texts");
    for (const std::string& type : types)
      if (!is_type(type)) builder_.refuse(fmt::format("there is no type \"{}\"", type));
    return types;
  }
  for (const TypeKeyword& of : kTypeKeywords)
    if (schema.contains(of.keyword) && (types.empty() || types.back() != of.type)) types.emplace_back(of.type);
  return types;
}

void SchemaRules::check_keywords(const OrderedJson& schema) {
  for (const auto& item : schema.items()) {
    const std::string& keyword = item.key();
    if (keyword == "type" || keyword == "enum" || keyword == "const" || is_annotation(keyword)) continue;
    if (std::none_of(std::begin(kTypeKeywords), std::end(kTypeKeywords),
                     [&](const TypeKeyword& of) { return of.keyword == keyword; }))
      builder_.refuse(fmt::format("the keyword \"{}\" is not supported", keyword),
                      "leave it out, and check the result; docs/grammars.md lists the keywords that are enforced");
  }
}

// A schema without $ref, allOf, anyOf and oneOf.
GrammarStateId SchemaRules::plain_states(const SchemaPlace& at) {
  const OrderedJson& schema = *at.schema;
  check_keywords(schema);
  const std::vector<std::string> types = types_of(schema);
  if (schema.contains("enum") || schema.contains("const")) return given_states(schema, types);
  if (types.empty() && !schema.contains("type"))
    return builder_.call(values_.value(JsonValues::kDepth), AutomatonBuilder::end());
  std::vector<GrammarStateId> kinds;
  for (const std::string& type : types) {
    place(at.pointer);
    kinds.push_back(type_states(at, type));
  }
  return builder_.any_of(kinds);
}

GrammarStateId SchemaRules::given_states(const OrderedJson& schema, const std::vector<std::string>& types) {
  std::vector<OrderedJson> values;
  if (schema.contains("const")) values.push_back(schema.at("const"));
  if (schema.contains("enum")) {
    const OrderedJson& list = schema.at("enum");
    if (!list.is_array()) builder_.refuse("enum is not a list");
    std::vector<OrderedJson> listed(list.begin(), list.end());
    if (schema.contains("const"))
      std::erase_if(values, [&](const OrderedJson& value) {
        return std::find(listed.begin(), listed.end(), value) == listed.end();
      });
    else
      values = std::move(listed);
  }
  if (schema.contains("type"))
    std::erase_if(values, [&](const OrderedJson& value) {
      return std::none_of(types.begin(), types.end(), [&](const std::string& type) { return has_type(value, type); });
    });
  for (const TypeKeyword& of : kTypeKeywords)
    if (schema.contains(of.keyword))
      builder_.refuse(fmt::format("\"{}\" next to enum or const is not supported", of.keyword),
                      "list the values that are valid");
  return values_.one_of(values, AutomatonBuilder::end());
}

GrammarStateId SchemaRules::type_states(const SchemaPlace& at, const std::string& type) {
  constexpr GrammarStateId end = AutomatonBuilder::end();
  if (type == "null") return builder_.literal("null", end);
  if (type == "boolean") return builder_.either(builder_.literal("true", end), builder_.literal("false", end));
  if (type == "object") return schema_object_states(*this, at);
  if (type == "array") return schema_array_states(*this, at);
  if (type == "string") return schema_string_states(*this, *at.schema);
  return schema_number_states(*this, *at.schema, type == "integer");
}

void SchemaRules::note(std::string text) {
  constexpr size_t kMostNotes = 16;
  if (notes_.size() < kMostNotes) notes_.push_back(fmt::format("{}: {}", builder_.place(), std::move(text)));
}

int64_t SchemaRules::count_of(const OrderedJson& schema, const char* keyword, int64_t otherwise) const {
  if (!schema.contains(keyword)) return otherwise;
  const OrderedJson& value = schema.at(keyword);
  constexpr double kLarge = 1e9;  // beyond all limits
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0) || number != std::floor(number))
    builder_.refuse(fmt::format("{} is not a whole number from 0", keyword));
  return static_cast<int64_t>(std::min(kLarge, number));
}

void add_json_schema(std::string_view text, const std::string& source, AutomatonBuilder& builder,
                     std::vector<std::string>& notes) {
  builder.at(source);
  if (static_cast<int64_t>(text.size()) > builder.limits().source_bytes)
    builder.refuse(fmt::format("the schema has more than {} bytes", builder.limits().source_bytes));
  const auto root = std::make_shared<const OrderedJson>(parse_ordered_json(text, source));
  SchemaRules(root, source, builder, notes).make();
}

void add_json_object(AutomatonBuilder& builder) {
  const GrammarRuleId root = builder.declare("JSON object");
  JsonValues values(builder);
  builder.define(root, builder.call(values.object(JsonValues::kDepth), AutomatonBuilder::end()));
}

}  // namespace headroom
