#include "doctor/messages/reading.h"

#include <algorithm>

namespace headroom::doctor {

bool Reading::near_before(size_t position, std::string_view pattern, size_t reach) const {
  const size_t start = position > reach ? position - reach : 0;
  return text_.view().substr(start, position - start).find(pattern) != std::string_view::npos;
}

std::optional<size_t> Reading::after(std::string_view pattern, size_t from, size_t reach) {
  if (from >= size()) return std::nullopt;
  const size_t found = text_.view().substr(from, reach + pattern.size()).find(pattern);
  if (found == std::string_view::npos) return std::nullopt;
  extend(from + found + pattern.size());
  return from + found + pattern.size();
}

bool Reading::follows(std::string_view pattern, size_t from, size_t reach) const {
  return from < size() && text_.view().substr(from, reach + pattern.size()).find(pattern) != std::string_view::npos;
}

void Reading::record(const Quantity& quantity, size_t start, const ByteField& field) {
  extend(quantity.end);
  if (message.*field.member) return;
  message.*field.member = quantity.bytes;
  const size_t first = text_.origin(start);
  const size_t last = text_.origin(quantity.end - 1) + 1;
  message.figures.push_back(
      {field.name, std::string(original_.substr(first, last - first)), quantity.bytes, quantity.resolution});
}

std::optional<size_t> Reading::amount(size_t position, uint32_t units, const ByteField& field) {
  const auto quantity = quantity_at(text_, position, units);
  if (!quantity) return std::nullopt;
  record(*quantity, position, field);
  return quantity->end;
}

bool Reading::amount_before(size_t position, size_t not_before, uint32_t units, const ByteField& field) {
  // Searches backwards: the number starts after the last byte that can be in neither a number nor a unit.
  size_t start = position;
  while (start > not_before && position - start < 40) {
    const char c = text_[start - 1];
    const bool part = (c >= '0' && c <= '9') || c == '.' || c == ',' || (c >= 'a' && c <= 'z');
    if (!part) break;
    --start;
  }
  for (; start < position; ++start) {
    const auto quantity = quantity_at(text_, start, units);
    if (!quantity || quantity->end != position) continue;
    record(*quantity, start, field);
    return true;
  }
  return false;
}

std::optional<int64_t> Reading::number(size_t position, bool may_end) {
  const auto number = whole_number_at(text_, position, may_end);
  if (!number) return std::nullopt;
  extend(number->end);
  return number->value;
}

bool Reading::device(size_t position, bool may_end) {
  const auto index = number(position, may_end);
  if (!index || *index > 4095) return false;
  if (!message.device_index) message.device_index = static_cast<int>(*index);
  return true;
}

void Reading::hint(std::string_view name) {
  if (!message.hinted(name)) message.hints.emplace_back(name);
}

void Reading::identify(std::string_view framework, std::string_view format) {
  message.framework = framework;
  message.format = format;
}

void Reading::phase(std::string_view name, std::string_view evidence) {
  message.phase = name;
  message.phase_evidence = evidence;
}

}  // namespace headroom::doctor
