// The tiers that have an arena, and one number of bytes for each.
#pragma once

#include <array>
#include <cstdint>

#include "ir/type.h"

namespace headroom {

constexpr std::array<Tier, 2> kArenaTiers{Tier::device, Tier::host};

struct TierBytes {
  int64_t device = 0;
  int64_t host = 0;
  int64_t& of(Tier tier) { return tier == Tier::host ? host : device; }
  int64_t of(Tier tier) const { return tier == Tier::host ? host : device; }
  bool operator==(const TierBytes&) const = default;
};

}  // namespace headroom
