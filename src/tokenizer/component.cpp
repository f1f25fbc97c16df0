#include "tokenizer/component.h"

#include <limits>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {

void Component::refuse(std::string_view problem) const {
  throw Error(ErrorKind::format, fmt::format("{}: {}", place_, problem), "correct or re-download the tokenizer.json");
}

void Component::refuse_type(std::string_view supported) const {
  throw Error(
      ErrorKind::format, fmt::format("{}: type \"{}\" is not supported", place_, type()),
      fmt::format("supported are {}; otherwise tokenise the data elsewhere into rows of {{\"input_ids\", \"labels\"}}",
                  supported));
}

std::string Component::type() const { return text("type"); }

Component Component::member(const char* key) const {
  if (!value_->is_object()) refuse("is not an object");
  const auto found = value_->find(key);
  if (found == value_->end()) refuse(fmt::format("\"{}\" is missing", key));
  return Component(*found, fmt::format("{}.{}", place_, key));
}

std::string Component::text(const char* key) const {
  const Component found = member(key);
  if (!found.value().is_string()) found.refuse("is not a string");
  return found.value().get<std::string>();
}

bool Component::flag(const char* key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const Component found = member(key);
  if (!found.value().is_boolean()) found.refuse("is neither true nor false");
  return found.value().get<bool>();
}

int32_t Component::number(const char* key) const {
  const Component found = member(key);
  const Json& value = found.value();
  const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
  if (!fits) found.refuse("is not a number from 0 to 2147483647");
  return value.get<int32_t>();
}

char32_t Component::character(const char* key) const {
  const std::string found = text(key);
  if (found.empty() || decode_utf8(found, 0).bytes != found.size()) member(key).refuse("is not one character");
  return decode_utf8(found, 0).code;
}

std::vector<Component> Component::list(const char* key) const {
  const Component found = member(key);
  if (!found.value().is_array()) found.refuse("is not a list");
  std::vector<Component> elements;
  for (size_t i = 0; i < found.value().size(); ++i)
    elements.emplace_back(found.value()[i], fmt::format("{}[{}]", found.place(), i));
  return elements;
}

}  // namespace headroom
