// The members of a request's JSON object, with the types that they must have. null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/ordered_json.h"

namespace headroom {

// Parses a body that must be an object of at most `most_values` values at any depth: a list of short numbers takes far
// more memory as values than as text. Throws ApiError(400).
OrderedJson parse_body(const std::string& body, int64_t most_values);

// All accessors throw ApiError(400) with the field when the value has another type or is out of range.
class JsonFields {
 public:
  // `object` must outlive it. `where` is put before names in errors: "stream_options."
  explicit JsonFields(const OrderedJson& object, std::string where = {}) : object_(object), where_(std::move(where)) {}

  // Null when it is absent or null.
  const OrderedJson* find(const char* name) const;
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::optional<bool> flag(const char* name) const;
  std::optional<std::string> text(const char* name) const;
  // An object, or null when it is absent.
  const OrderedJson* object(const char* name) const;
  const OrderedJson* array(const char* name) const;

  [[noreturn]] void refuse(const char* name, const std::string& why) const;

 private:
  const OrderedJson& object_;
  std::string where_;
};

}  // namespace headroom
