// Offsets for all storages of a liveness analysis: one arena for each tier of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/tier_bytes.h"
#include "memory/liveness.h"
#include "memory/offset_assignment.h"

namespace headroom {

struct Arenas {
  std::vector<int64_t> offsets;  // by storage, in the arena of its tier
  TierBytes peaks;
};

// Assigns the offsets of each tier separately, at its alignment (tier_alignment): storages of different tiers never
// conflict. Pure.
Arenas assign_arenas(const Liveness& liveness, const AssignmentOptions& options = {});

// Checks each arena with the independent checker. Returns the first violation, if there is one.
std::optional<std::string> find_violation(const Liveness& liveness, const Arenas& arenas, int64_t alignment);

// The most bytes alive in one slot, for each tier.
TierBytes lower_bounds(const Liveness& liveness, int64_t alignment);

}  // namespace headroom
