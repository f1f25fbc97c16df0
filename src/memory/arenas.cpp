#include "memory/arenas.h"

#include "memory/checker.h"
#include "memory/lower_bound.h"

namespace headroom {

Arenas pack_arenas(const Liveness& liveness, const PackOptions& options) {
  Arenas out;
  out.offsets.assign(liveness.storages.size(), 0);
  for (const Tier tier : kArenaTiers) {
    const std::vector<Buffer> buffers = liveness.buffers(tier);
    PackOptions aligned = options;
    aligned.alignment = tier_alignment(tier, options.alignment);
    const Packing packing = pack(buffers, aligned);
    for (size_t i = 0; i < buffers.size(); ++i) out.offsets[static_cast<size_t>(buffers[i].id)] = packing.offsets[i];
    out.peaks.of(tier) = packing.peak;
  }
  return out;
}

std::optional<std::string> find_violation(const Liveness& liveness, const Arenas& arenas, int64_t alignment) {
  for (const Tier tier : kArenaTiers) {
    const std::vector<Buffer> buffers = liveness.buffers(tier);
    Packing packing{{}, arenas.peaks.of(tier)};
    for (const Buffer& buffer : buffers) packing.offsets.push_back(arenas.offsets.at(static_cast<size_t>(buffer.id)));
    if (auto violation = find_violation(buffers, packing, tier_alignment(tier, alignment), packing.peak))
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
