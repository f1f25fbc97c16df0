#include "grammar/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headroom {
namespace {

constexpr int kMostReferences = 32;  // in a chain

// The values that both lists have; "integer" is a subset of "number".
OrderedJson common_values(const OrderedJson& first, const OrderedJson& second) {
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& value : first)
    if (std::find(second.begin(), second.end(), value) != second.end() ||
        (value == "integer" && std::find(second.begin(), second.end(), "number") != second.end()))
      out.push_back(value);
  for (const OrderedJson& value : second)
    if (value == "integer" && std::find(first.begin(), first.end(), "number") != first.end() &&
        std::find(out.begin(), out.end(), value) == out.end())
      out.push_back(value);
  return out;
}

OrderedJson as_list(const OrderedJson& value) { return value.is_array() ? value : OrderedJson::array({value}); }

// A schema for what satisfies both.
OrderedJson and_also(const OrderedJson& schema, const OrderedJson& other) {
  if (schema == other || other == true) return schema;
  if (schema == true) return other;
  if (schema == false || other == false) return false;
  return {{"allOf", OrderedJson::array({schema, other})}};
}

// Properties that `schema` names and `named_by` does not must satisfy the additionalProperties of `named_by`.
void add_additional(const OrderedJson& schema, OrderedJson& properties_of, const OrderedJson& named_by) {
  if (!named_by.contains("additionalProperties") || !schema.contains("properties")) return;
  for (auto& item : properties_of["properties"].items()) {
    if (!schema.at("properties").contains(item.key())) continue;
    if (named_by.contains("properties") && named_by.at("properties").contains(item.key())) continue;
    item.value() = and_also(item.value(), named_by.at("additionalProperties"));
  }
}

std::string decoded_pointer(std::string_view reference, const AutomatonBuilder& builder) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (reference[i] != '%') {
      out.push_back(reference[i]);
      continue;
    }
    const int high = i + 2 < reference.size() ? digit(reference[i + 1]) : -1;
    const int low = high < 0 ? -1 : digit(reference[i + 2]);
    if (low < 0) builder.refuse("a $ref has a % without two hexadecimal digits");
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

}  // namespace

bool is_annotation(std::string_view keyword) {
  static constexpr std::array kKnown = std::to_array<std::string_view>({"title",
                                                                        "description",
                                                                        "default",
                                                                        "examples",
                                                                        "example",
                                                                        "$schema",
                                                                        "$id",
                                                                        "id",
                                                                        "$comment",
                                                                        "$defs",
                                                                        "definitions",
                                                                        "readOnly",
                                                                        "writeOnly",
                                                                        "deprecated",
                                                                        "contentEncoding",
                                                                        "contentMediaType",
                                                                        "discriminator",
                                                                        "$anchor",
                                                                        "nullable",
                                                                        "propertyOrdering",
                                                                        "strict"});
  return std::find(kKnown.begin(), kKnown.end(), keyword) != kKnown.end() || keyword.starts_with("x-");
}

std::vector<std::string> schema_types(const OrderedJson& schema) {
  std::vector<std::string> types;
  if (!schema.contains("type")) return types;
  for (const OrderedJson& type : as_list(schema.at("type")))
    if (type.is_string()) types.push_back(type.get<std::string>());
  return types;
}

namespace {

int64_t text_size(const OrderedJson& schema) {
  return static_cast<int64_t>(schema.dump(-1, ' ', false, OrderedJson::error_handler_t::replace).size());
}

}  // namespace

SchemaMerge::SchemaMerge(const OrderedJson& root, AutomatonBuilder& builder)
    : root_(root), builder_(builder), most_(most_bytes(text_size(root))) {}

void SchemaMerge::count(const OrderedJson& schema) {
  if ((bytes_ += text_size(schema)) > most_)
    builder_.refuse(fmt::format("what $ref, allOf and anyOf join has more than {} bytes", most_),
                    "make it smaller, or give $ref without other keywords beside it");
}

const OrderedJson& SchemaMerge::target(const OrderedJson& reference) const {
  if (!reference.is_string()) builder_.refuse("$ref is not a text");
  const std::string& text = reference.get_ref<const std::string&>();
  if (text != "#" && !text.starts_with("#/"))
    builder_.refuse(fmt::format("$ref \"{}\": only references into the same schema are supported (#/...)", text));
  try {
    return root_.at(OrderedJson::json_pointer(decoded_pointer(text.substr(1), builder_)));
  } catch (const OrderedJson::exception&) {
    builder_.refuse(fmt::format("$ref \"{}\": there is nothing at that place", text));
  }
}

OrderedJson SchemaMerge::flat(const OrderedJson& schema, int depth) {
  if (depth > kMostReferences)
    builder_.refuse(fmt::format("$ref and allOf lead through more than {} schemas", kMostReferences),
                    "a schema that is a part of itself by $ref alone describes nothing");
  if (schema.is_boolean())
    return schema.get<bool>() ? OrderedJson::object() : OrderedJson{{"enum", OrderedJson::array()}};
  if (!schema.is_object()) builder_.refuse("a schema is an object, true or false");
  OrderedJson own = OrderedJson::object();
  for (const auto& item : schema.items())
    if (!is_annotation(item.key()) && item.key() != "$ref" && item.key() != "allOf") own[item.key()] = item.value();
  builder_.step();
  count(own);
  if (schema.contains("$ref")) own = both(flat(target(schema.at("$ref")), depth + 1), own);
  if (!schema.contains("allOf")) return own;
  if (!schema.at("allOf").is_array()) builder_.refuse("allOf is not a list");
  for (const OrderedJson& part : schema.at("allOf")) own = both(std::move(own), flat(part, depth + 1));
  return own;
}

OrderedJson SchemaMerge::both(OrderedJson first, const OrderedJson& second) {
  builder_.step(1 + static_cast<int64_t>(second.size()));
  OrderedJson out = first;
  for (const auto& item : second.items()) {
    if (out.contains(item.key()))
      merge_keyword(item.key(), out[item.key()], item.value());
    else
      out[item.key()] = item.value();
  }
  if (out.contains("properties") && out["properties"].is_object()) {
    add_additional(first, out, second);
    add_additional(second, out, first);
  }
  return out;
}

void SchemaMerge::merge_keyword(const std::string& keyword, OrderedJson& value, const OrderedJson& other) {
  static constexpr std::array kLeast =
      std::to_array<std::string_view>({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"});
  static constexpr std::array kMost =
      std::to_array<std::string_view>({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"});
  const auto is_in = [&](const auto& keywords) {
    return std::find(keywords.begin(), keywords.end(), keyword) != keywords.end();
  };
  if (value == other) return;
  if (keyword == "type" || keyword == "enum") {
    value = common_values(as_list(value), as_list(other));
  } else if (keyword == "required" && value.is_array() && other.is_array()) {
    for (const OrderedJson& name : other)
      if (std::find(value.begin(), value.end(), name) == value.end()) value.push_back(name);
  } else if (keyword == "properties" && value.is_object() && other.is_object()) {
    for (const auto& item : other.items())
      value[item.key()] = value.contains(item.key()) ? and_also(value[item.key()], item.value()) : item.value();
  } else if (keyword == "items" || keyword == "additionalProperties") {
    value = and_also(value, other);
  } else if (is_in(kLeast) && value.is_number() && other.is_number()) {
    if (other > value) value = other;
  } else if (is_in(kMost) && value.is_number() && other.is_number()) {
    if (other < value) value = other;
  } else {
    builder_.refuse(fmt::format("\"{}\" has two values: from allOf, $ref or anyOf and next to it", keyword),
                    "give it once");
  }
}

}  // namespace headroom
