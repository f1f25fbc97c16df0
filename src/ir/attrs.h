// Attributes of a node: a small sorted map from name to integer, real or text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headroom {

using Attr = std::variant<int64_t, double, std::string>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const char*, Attr>> list);

  Attrs& set(std::string_view name, Attr value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Missing names give `fallback`; a value of another kind is a broken invariant.
  int64_t integer(std::string_view name, int64_t fallback = 0) const;
  double real(std::string_view name, double fallback = 0) const;
  std::string_view text(std::string_view name, std::string_view fallback = {}) const;

  const std::vector<std::pair<std::string, Attr>>& items() const { return items_; }
  bool operator==(const Attrs&) const = default;

 private:
  const Attr* find(std::string_view name) const;
  std::vector<std::pair<std::string, Attr>> items_;  // sorted by name
};

}  // namespace headroom
