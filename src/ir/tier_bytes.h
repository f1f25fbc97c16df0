// The names of tiers, and a number of bytes for each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/type.h"

namespace headroom {

std::string_view tier_name(Tier tier);
std::optional<Tier> parse_tier(std::string_view name);

constexpr std::array<Tier, 3> kArenaTiers{Tier::device, Tier::host, Tier::disk};
// The tiers below the device, which only copies access.
constexpr std::array<Tier, 2> kLowerTiers{Tier::host, Tier::disk};

// A disk is read and written in whole blocks: every value there starts at a block and occupies whole blocks.
constexpr int64_t kDiskBlockBytes = 4096;

// The alignment of a tier's values, given the device's.
constexpr int64_t tier_alignment(Tier tier, int64_t alignment) {
  return tier == Tier::disk ? std::max(alignment, kDiskBlockBytes) : alignment;
}

struct TierBytes {
  int64_t device = 0;
  int64_t host = 0;
  int64_t disk = 0;
  int64_t& of(Tier tier) { return tier == Tier::device ? device : tier == Tier::host ? host : disk; }
  int64_t of(Tier tier) const { return tier == Tier::device ? device : tier == Tier::host ? host : disk; }
  bool operator==(const TierBytes&) const = default;
};

}  // namespace headroom
