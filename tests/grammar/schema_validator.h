// Validates a JSON value against a schema: the keywords that the tests of random texts use, by their definitions.
#pragma once

#include <regex>
#include <string>

#include "formats/json.h"

namespace headroom {

class SchemaValidator {
 public:
  explicit SchemaValidator(const std::string& schema) : root_(Json::parse(schema)) {}
  bool is_valid(const Json& value) const { return valid(root_, value); }

 private:
  static bool has_type(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == value.type_name();
  }
  // Characters, not bytes.
  static int64_t length(const std::string& text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  }

  bool valid(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& item : schema.items())
      if (!holds(schema, item.key(), item.value(), value)) return false;
    return true;
  }

  bool holds(const Json& schema, const std::string& keyword, const Json& said, const Json& value) const {
    const auto any = [&](const Json& list) {
      return std::any_of(list.begin(), list.end(), [&](const Json& one) { return valid(one, value); });
    };
    if (keyword == "$ref") return valid(root_.at(Json::json_pointer(said.get<std::string>().substr(1))), value);
    if (keyword == "anyOf" || keyword == "oneOf") return any(said);
    if (keyword == "allOf")
      return std::all_of(said.begin(), said.end(), [&](const Json& one) { return valid(one, value); });
    if (keyword == "enum") return std::find(said.begin(), said.end(), value) != said.end();
    if (keyword == "const") return said == value;
    if (keyword == "type") {
      if (said.is_string()) return has_type(value, said);
      return std::any_of(said.begin(), said.end(), [&](const Json& type) { return has_type(value, type); });
    }
    if (value.is_object()) return object_holds(schema, keyword, said, value);
    if (value.is_array()) return array_holds(schema, keyword, said, value);
    if (value.is_string()) return string_holds(keyword, said, value.get<std::string>());
    return !value.is_number() || number_holds(keyword, said, value);
  }

  bool object_holds(const Json& schema, const std::string& keyword, const Json& said, const Json& value) const {
    if (keyword == "properties") {
      for (const auto& item : said.items())
        if (value.contains(item.key()) && !valid(item.value(), value.at(item.key()))) return false;
    } else if (keyword == "required") {
      for (const Json& name : said)
        if (!value.contains(name.get<std::string>())) return false;
    } else if (keyword == "additionalProperties") {
      for (const auto& item : value.items())
        if (!(schema.contains("properties") && schema.at("properties").contains(item.key())) &&
            !valid(said, item.value()))
          return false;
    }
    return true;
  }

  bool array_holds(const Json& schema, const std::string& keyword, const Json& said, const Json& value) const {
    const size_t prefix = schema.contains("prefixItems") ? schema.at("prefixItems").size() : 0;
    if (keyword == "minItems") return value.size() >= said.get<size_t>();
    if (keyword == "maxItems") return value.size() <= said.get<size_t>();
    if (keyword == "prefixItems")
      for (size_t i = 0; i < std::min(prefix, value.size()); ++i)
        if (!valid(said[i], value[i])) return false;
    if (keyword == "items")
      for (size_t i = prefix; i < value.size(); ++i)
        if (!valid(said, value[i])) return false;
    return true;
  }

  static bool string_holds(const std::string& keyword, const Json& said, const std::string& value) {
    if (keyword == "minLength") return length(value) >= said.get<int64_t>();
    if (keyword == "maxLength") return length(value) <= said.get<int64_t>();
    return keyword != "pattern" || std::regex_search(value, std::regex(said.get<std::string>()));
  }

  static bool number_holds(const std::string& keyword, const Json& said, const Json& value) {
    if (keyword == "minimum") return value >= said;
    if (keyword == "maximum") return value <= said;
    if (keyword == "exclusiveMinimum") return value > said;
    return keyword != "exclusiveMaximum" || value < said;
  }

  Json root_;
};

}  // namespace headroom
