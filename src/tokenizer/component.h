// Reads the components of a tokenizer.json (normalizer, pre_tokenizer, ...), with errors that name the place.
#pragma once

#include <string>
#include <string_view>

#include "formats/json.h"

namespace headroom {

// A JSON value and its place: "FILE: normalizer.normalizers[1]".
class Component {
 public:
  Component(const Json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  const Json& value() const { return *value_; }

  // The text of its member "type". Throws Error(format) if it is not an object or has none.
  std::string type() const;
  bool has(const char* key) const { return value_->is_object() && value_->contains(key) && !value_->at(key).is_null(); }
  // Required members, and members with a default. Throw Error(format) naming the member if it has another type.
  Component member(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key, bool otherwise) const;
  // A number from 0 to 2^31 - 1.
  int32_t number(const char* key) const;
  int32_t number(const char* key, int32_t otherwise) const { return has(key) ? number(key) : otherwise; }
  // A text member that is a single code point.
  char32_t character(const char* key) const;
  // The elements of a list member.
  std::vector<Component> list(const char* key) const;

  // Throw Error(format): this component is malformed, or its type is not supported.
  [[noreturn]] void refuse(std::string_view problem) const;
  [[noreturn]] void refuse_type(std::string_view supported) const;

 private:
  const Json* value_;
  std::string place_;
};

}  // namespace headroom
