#include "planner/mixed_layers.h"

#include <algorithm>
#include <tuple>

#include "planner/layer_kinds.h"
#include "planner/layer_mixes.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/recompute.h"

namespace headroom {
namespace {

constexpr int64_t kApart = 2048;  // points differ by at least this part of their bytes

// A mix with one of its chunks, or a known point.
struct Light {
  int64_t bytes = 0;
  double seconds = 0;
  const LevelledFamilies* of = nullptr;  // null: known
  LayerMix mix = {};
  size_t chunk = 0;
};

// The maximum over the slots that belong to no layer, in addition to what the mix keeps.
int64_t beside_bytes(std::span<const LayerFacts> facts, const LayerMix& mix, size_t chunk) {
  int64_t most = 0;
  for (const LayerRuns& runs : mix.kinds)
    for (size_t i = 0; i < kMostRuns; ++i)
      if (runs.layers[i] > 0) {
        const BesideKept& beside = facts[runs.option[i]].beside[chunk];
        most = std::max({most, beside.none_kept, beside.kept + mix.saved});
      }
  return most;
}

void add_mixes(const PlanRequest& request, const LevelledFamilies& of, std::span<const uint8_t> kinds,
               std::vector<Light>& out) {
  const int64_t more = process_bytes_of(request, of.family.candidate);
  for (const LayerMix& mix : unbeaten_mixes(of.facts, kinds, keep_unit(static_cast<int64_t>(kinds.size())))) {
    if (mix.one_option()) continue;
    const int64_t work = work_of(of.facts, mix.options(kinds));
    for (size_t chunk = 0; chunk < of.family.chunks.size(); ++chunk) {
      const int64_t arena = std::max(work, beside_bytes(of.facts, mix, chunk));
      // Like seconds of bounds, to seven digits.
      const double seconds = static_cast<double>(static_cast<float>(of.facts.front().seconds[chunk] + mix.redone));
      out.push_back({run_peaks({arena, 0, 0}, request, more).device, seconds, &of, mix, chunk});
    }
  }
}

std::vector<KeepRun> runs_of(const LayerRuns& runs, const std::vector<Keep>& levels) {
  std::vector<KeepRun> out;
  for (size_t i = 0; i < kMostRuns; ++i) out.push_back({runs.layers[i], levels[runs.option[i]]});
  return out;
}

FrontierPoint point_of(const PlanRequest& request, const Light& light) {
  FrontierPoint out;
  out.candidate = member(light.of->family, light.of->family.candidate, light.of->family.chunks[light.chunk]);
  out.candidate[techniques::recompute] =
      keep_setting(runs_of(light.mix.kinds[0], light.of->levels), runs_of(light.mix.kinds[1], light.of->levels));
  out.peaks = run_peaks({}, request, process_bytes_of(request, out.candidate));
  out.peaks.device = light.bytes;
  out.step_seconds = light.seconds;
  return out;
}

}  // namespace

bool may_mix(const PlanRequest& request, const CandidateFamily& family) {
  const Candidate& candidate = family.candidate;
  const std::span<const Technique* const> all = all_techniques();
  const bool add_up = std::all_of(all.begin(), all.end(),
                                  [&](const Technique* one) { return one->layers_add_up || !candidate[*one].taken(); });
  return add_up && pin(request, kRecompute.name).empty() && !offloads(candidate) && block_count(request.forward) > 1;
}

void add_level(const CandidateFamily& family, LayerFacts facts, std::vector<LevelledFamilies>& to) {
  const Candidate rest = family.candidate.without(techniques::recompute);
  auto at = std::find_if(to.begin(), to.end(), [&](const LevelledFamilies& known) {
    return known.family.candidate.without(techniques::recompute) == rest && known.family.chunks == family.chunks;
  });
  if (at == to.end()) at = to.insert(to.end(), {family, {}, {}});
  at->levels.push_back(keeps(family.candidate[techniques::recompute]).front());
  at->facts.push_back(std::move(facts));
}

std::vector<FrontierPoint> mixed_points(const PlanRequest& request, std::span<const LevelledFamilies> all,
                                        std::span<const FrontierPoint> known) {
  if (all.empty()) return {};
  const std::vector<uint8_t> kinds = layer_kinds(request.forward);
  std::vector<Light> lights;
  for (const FrontierPoint& point : known)
    if (!offloads(point.candidate)) lights.push_back({point.peaks.device, point.step_seconds});
  for (const LevelledFamilies& of : all) add_mixes(request, of, kinds, lights);
  std::vector<const Light*> order;
  for (const Light& light : lights) order.push_back(&light);
  std::stable_sort(order.begin(), order.end(), [](const Light* a, const Light* b) {
    return std::tie(a->bytes, a->seconds) < std::tie(b->bytes, b->seconds);
  });
  std::vector<FrontierPoint> out;
  const Light* last = nullptr;
  for (const Light* light : order) {
    if (last && light->seconds >= last->seconds) continue;
    if (last && light->of && light->bytes - last->bytes < last->bytes / kApart) continue;
    if (light->of) out.push_back(point_of(request, *light));
    last = light;
  }
  return out;
}

}  // namespace headroom
