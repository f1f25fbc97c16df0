#include "serve/json_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "serve/api_error.h"

namespace headroom {

namespace {

// For well-formed JSON, at least the number of its values.
int64_t count_values(std::string_view text) {
  int64_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string)
      i += c == '\\';
    else
      values += c == ',' || c == '[' || c == '{';
  }
  return values;
}

}  // namespace

OrderedJson parse_body(const std::string& body, int64_t most_values) {
  if (const int64_t values = count_values(body); values > most_values)
    throw ApiError(400, fmt::format("the body has {} JSON values; this server reads at most {}", values, most_values));
  OrderedJson parsed;
  try {
    parsed = parse_ordered_json(body, "the body");
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  } catch (const OrderedJson::exception& error) {
    throw ApiError(400, fmt::format("the body is malformed JSON: {}", error.what()));
  }
  if (!parsed.is_object()) throw ApiError(400, fmt::format("the body is a JSON {}, not an object", parsed.type_name()));
  return parsed;
}

void JsonFields::refuse(const char* name, const std::string& why) const {
  throw ApiError(400, fmt::format("{}{} {}", where_, name, why), where_ + name);
}

const OrderedJson* JsonFields::find(const char* name) const {
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<int64_t> JsonFields::integer(const char* name, int64_t least, int64_t most) const {
  const OrderedJson* value = find(name);
  if (!value) return {};
  const bool large = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value->is_number_integer() || large) refuse(name, "must be an integer");
  const auto number = value->get<int64_t>();
  if (number < least || number > most)
    refuse(name, fmt::format("is {}; it must be from {} to {}", number, least, most));
  return number;
}

std::optional<double> JsonFields::number(const char* name, double least, double most) const {
  const OrderedJson* value = find(name);
  if (!value) return {};
  if (!value->is_number()) refuse(name, "must be a number");
  const auto number = value->get<double>();
  if (!(number >= least && number <= most))
    refuse(name, fmt::format("is {}; it must be from {} to {}", number, least, most));
  return number;
}

std::optional<bool> JsonFields::flag(const char* name) const {
  const OrderedJson* value = find(name);
  if (!value) return {};
  if (!value->is_boolean()) refuse(name, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::text(const char* name) const {
  const OrderedJson* value = find(name);
  if (!value) return {};
  if (!value->is_string()) refuse(name, "must be a string");
  return value->get<std::string>();
}

const OrderedJson* JsonFields::object(const char* name) const {
  const OrderedJson* value = find(name);
  if (value && !value->is_object()) refuse(name, "must be an object");
  return value;
}

const OrderedJson* JsonFields::array(const char* name) const {
  const OrderedJson* value = find(name);
  if (value && !value->is_array()) refuse(name, "must be a list");
  return value;
}

}  // namespace headroom
