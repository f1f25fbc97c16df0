#include "memory/arenas.h"

#include "memory/checker.h"
#include "memory/lower_bound.h"

namespace headroom {

Arenas assign_arenas(const Liveness& liveness, const AssignmentOptions& options) {
  Arenas out;
  out.offsets.assign(liveness.storages.size(), 0);
  for (const Tier tier : kArenaTiers) {
    const std::vector<Buffer> buffers = liveness.buffers(tier);
    AssignmentOptions aligned = options;
    aligned.alignment = tier_alignment(tier, options.alignment);
    const OffsetAssignment assignment = assign_offsets(buffers, aligned);
    for (size_t i = 0; i < buffers.size(); ++i) out.offsets[static_cast<size_t>(buffers[i].id)] = assignment.offsets[i];
    out.peaks.of(tier) = assignment.peak;
  }
  return out;
}

std::optional<std::string> find_violation(const Liveness& liveness, const Arenas& arenas, int64_t alignment) {
  for (const Tier tier : kArenaTiers) {
    const std::vector<Buffer> buffers = liveness.buffers(tier);
    OffsetAssignment assignment{{}, arenas.peaks.of(tier)};
    for (const Buffer& buffer : buffers)
      assignment.offsets.push_back(arenas.offsets.at(static_cast<size_t>(buffer.id)));
    if (auto violation = find_violation(buffers, assignment, tier_alignment(tier, alignment), assignment.peak))
      return violation;
  }
  return std::nullopt;
}

TierBytes lower_bounds(const Liveness& liveness, int64_t alignment) {
  TierBytes out;
  for (const Tier tier : kArenaTiers)
    out.of(tier) = lower_bound(liveness.buffers(tier), tier_alignment(tier, alignment));
  return out;
}

}  // namespace headroom
