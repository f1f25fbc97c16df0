// What the kernels of a device may rely on, by name.
#pragma once

#include <string_view>
#include <vector>

namespace headroom {

// Declared as a constant by the backend whose kernels ask for it. Two of one name are the same.
struct Capability {
  std::string_view name;
};

// Matrices of bf16 are multiplied tile by tile; f32 matrices too, as sums of bf16 numbers.
inline constexpr Capability kBf16Tiles{"bf16_tiles"};

// A set of capabilities. Some come in versions, above 0; the others have version 1.
class Capabilities {
 public:
  Capabilities& add(Capability capability, int version = 1);
  bool has(Capability capability) const { return version(capability) > 0; }
  // 0 where it is not there.
  int version(Capability capability) const;
  // True when all `others` are there, in their versions or later ones.
  bool cover(const Capabilities& others) const;
  // What is in both, in the earlier version.
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
