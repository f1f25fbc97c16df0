#include "ir/attrs.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

Attrs::Attrs(std::initializer_list<std::pair<const char*, Attr>> list) {
  for (const auto& [name, value] : list) set(name, value);
}

const Attrs::Items& Attrs::items() const {
  static const Items none;
  return items_ ? *items_ : none;
}

Attrs& Attrs::set(std::string_view name, Attr value) {
  if (!items_ || items_.use_count() > 1) items_ = std::make_shared<Items>(items());
  names_ |= bit(name);
  auto at = std::lower_bound(items_->begin(), items_->end(), name,
                             [](const auto& item, std::string_view n) { return item.first < n; });
  if (at != items_->end() && at->first == name)
    at->second = std::move(value);
  else
    items_->insert(at, {std::string(name), std::move(value)});
  return *this;
}

const Attr* Attrs::search(std::string_view name) const {
  for (const auto& item : items())
    if (item.first == name) return &item.second;
  return nullptr;
}

int64_t Attrs::integer(std::string_view name, int64_t fallback) const {
  const Attr* attr = find(name);
  if (!attr) return fallback;
  HR_CHECK(std::holds_alternative<int64_t>(*attr), "attribute {} is not an integer", name);
  return std::get<int64_t>(*attr);
}

double Attrs::real(std::string_view name, double fallback) const {
  const Attr* attr = find(name);
  if (!attr) return fallback;
  if (const int64_t* whole = std::get_if<int64_t>(attr)) return static_cast<double>(*whole);
  HR_CHECK(std::holds_alternative<double>(*attr), "attribute {} is not a number", name);
  return std::get<double>(*attr);
}

std::string_view Attrs::text(std::string_view name, std::string_view fallback) const {
  const Attr* attr = find(name);
  if (!attr) return fallback;
  HR_CHECK(std::holds_alternative<std::string>(*attr), "attribute {} is not a string", name);
  return std::get<std::string>(*attr);
}

}  // namespace headroom
