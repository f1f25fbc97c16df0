// Attributes of a node: a small sorted map from name to integer, real or text. Copy-on-write: copies share the map
// until one of them changes, which is rare for the nodes of a graph.
#pragma once

#include <cstdint>
#include <memory>
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
  // Missing names give `fallback`; a value of another kind is a broken invariant (HR_CHECK).
  int64_t integer(std::string_view name, int64_t fallback = 0) const;
  double real(std::string_view name, double fallback = 0) const;
  std::string_view text(std::string_view name, std::string_view fallback = {}) const;

  // Sorted by name.
  using Items = std::vector<std::pair<std::string, Attr>>;
  const Items& items() const;
  bool operator==(const Attrs& other) const { return items_ == other.items_ || items() == other.items(); }

 private:
  const Attr* find(std::string_view name) const;
  std::shared_ptr<Items> items_;  // null: empty; changed only while no other copy shares it
};

}  // namespace headroom
