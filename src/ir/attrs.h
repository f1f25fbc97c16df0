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
  // One of 64 bits for each name. A name whose bit is not in `names_` is missing: rules ask about many that are.
  static uint64_t bit(std::string_view name) {
    if (name.empty()) return 1;
    const auto letter = [&](size_t at) { return static_cast<uint64_t>(static_cast<unsigned char>(name[at])); };
    return uint64_t{1} << ((letter(0) * 5 + letter(name.size() - 1) * 3 + name.size()) % 64);
  }
  const Attr* find(std::string_view name) const { return (names_ & bit(name)) == 0 ? nullptr : search(name); }
  const Attr* search(std::string_view name) const;
  std::shared_ptr<Items> items_;  // null: empty; changed only while no other copy shares it
  uint64_t names_ = 0;
};

}  // namespace headroom
