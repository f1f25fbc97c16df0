// Profiles compiled into the library.
#pragma once

#include <span>
#include <string_view>

namespace headroom {

struct ShippedProfile {
  std::string_view name;
  std::string_view json;
};

std::span<const ShippedProfile> shipped_profiles();

}  // namespace headroom
