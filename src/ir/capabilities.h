// What the kernels of a device may rely on, by name.
#pragma once

#include <string_view>
#include <vector>

namespace headroom {

// Declared as a constant by the backend whose kernels need it. Two with the same name are the same.
struct Capability {
  std::string_view name;
};

// Matrix products run on bf16 tiles; f32 matrices too, as sums of bf16 numbers.
inline constexpr Capability kBf16Tiles{"bf16_tiles"};

// A set of capabilities. Some have versions, which are positive; the others have version 1.
class Capabilities {
 public:
  Capabilities& add(Capability capability, int version = 1);
  bool has(Capability capability) const { return version(capability) > 0; }
  // 0 if it is not in the set.
  int version(Capability capability) const;
  // True if all `others` are in the set, in their versions or later ones.
  bool cover(const Capabilities& others) const;
  // The capabilities that are in both sets, in the earlier version.
  Capabilities shared_with(const Capabilities& others) const;

  bool operator==(const Capabilities&) const = default;

 private:
  struct Entry {
    std::string_view name;
    int version = 1;
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries_;  // by name
};

}  // namespace headroom
