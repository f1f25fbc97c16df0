#include "ir/tier_bytes.h"

namespace headroom {

std::string_view tier_name(Tier tier) { return tier == Tier::device ? "device" : tier == Tier::host ? "host" : "disk"; }

std::optional<Tier> parse_tier(std::string_view name) {
  for (const Tier tier : kArenaTiers)
    if (tier_name(tier) == name) return tier;
  return std::nullopt;
}

}  // namespace headroom
