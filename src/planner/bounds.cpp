#include "planner/bounds.h"

#include <algorithm>
#include <tuple>

#include "base/bytes.h"
#include "cost/predict.h"
#include "cost/stream_timeline.h"
#include "ir/call_types.h"
#include "memory/liveness.h"
#include "planner/assemble.h"

namespace headroom {
namespace {

// A loss node and what is alive beside its scratch.
struct LossSlot {
  const Node* node = nullptr;
  int64_t others = 0;  // bytes alive in its slot without its own scratch
  bool trains = false;
  std::vector<ConcreteType> inputs, outputs;
};

struct Profiled {
  int64_t without_loss = 0;  // largest live sum over the other slots
  std::vector<LossSlot> losses;
};

// By slot, the bytes alive of the storages that `counts` chooses.
template <typename Counts>
std::vector<int64_t> live_sums(const Liveness& liveness, int64_t alignment, const Counts& counts) {
  std::vector<int64_t> live(liveness.slots.size() + 1, 0);
  for (const StorageLife& life : liveness.storages) {
    if (!counts(life)) continue;
    const int64_t bytes = align_up(life.bytes, alignment);
    live[static_cast<size_t>(life.lower)] += bytes;
    if (life.upper < static_cast<int64_t>(live.size())) live[static_cast<size_t>(life.upper)] -= bytes;
  }
  for (size_t slot = 1; slot < live.size(); ++slot) live[slot] += live[slot - 1];
  live.pop_back();
  return live;
}

// What each tier below the device holds at most when what lies there lies where `place` says.
TierBytes lower_peaks(const Liveness& liveness, const Offload& place, int64_t alignment) {
  TierBytes peaks;
  for (const Tier tier : kLowerTiers)
    if (place.uses(tier)) {
      const std::vector<int64_t> live = live_sums(
          liveness, tier_alignment(tier, alignment),
          [&](const StorageLife& life) { return life.tier != Tier::device && place.tier_of(life.role) == tier; });
      peaks.of(tier) = *std::max_element(live.begin(), live.end());
    }
  return peaks;
}

Profiled profile_slots(const Graph& graph, const Liveness& liveness, const Bindings& bindings,
                       const DeviceFacts& facts) {
  const std::vector<int64_t> live =
      live_sums(liveness, facts.alignment, [](const StorageLife& life) { return life.tier == Tier::device; });
  Profiled out;
  CallTypes types;
  for (size_t slot = 0; slot < live.size(); ++slot) {
    const Slot& at = liveness.slots[slot];
    const Node& node = graph.node(at.node);
    if (at.kind != SlotKind::call || !is_loss(node.op->cost_class())) {
      out.without_loss = std::max(out.without_loss, live[slot]);
      continue;
    }
    const OpCall call = types.of(graph, node, bindings);
    LossSlot loss{&node,
                  live[slot],
                  node.stage == Stage::backward,
                  {call.inputs.begin(), call.inputs.end()},
                  {call.outputs.begin(), call.outputs.end()}};
    if (const int32_t scratch = liveness.scratch_of_slot[slot]; scratch != kNone)
      loss.others -= align_up(liveness.storages[static_cast<size_t>(scratch)].bytes, facts.alignment);
    out.losses.push_back(std::move(loss));
  }
  return out;
}

// The device's arena with this chunk of the loss, and the seconds that it adds to those of the graph's.
Bound loss_bound(const Profiled& profiled, int64_t chunk, int64_t trips, const PlanRequest& request) {
  Bound bound;
  bound.arenas.device = profiled.without_loss;
  for (const LossSlot& loss : profiled.losses) {
    Attrs attrs = loss.node->attrs;
    const OpCall before{loss.inputs, loss.outputs, loss.node->attrs};
    attrs.set("chunk", chunk);
    const OpCall after{loss.inputs, loss.outputs, attrs};
    const int64_t scratch = align_up(loss.node->op->scratch_bytes(after, request.facts), request.facts.alignment);
    bound.arenas.device = std::max(bound.arenas.device, loss.others + scratch);
    if (loss.trains)
      bound.step_seconds += static_cast<double>(trips) * (predict_call(*loss.node->op, after, request.profile) -
                                                          predict_call(*loss.node->op, before, request.profile));
  }
  return bound;
}

}  // namespace

namespace {

// What the compute passes look at beside the sizes.
auto compute_key(const Candidate& candidate) {
  return std::tie(candidate.weight_copies, candidate.keep, candidate.fused_optimizer);
}

// What the offload passes look at.
auto offload_key(const Candidate& candidate) {
  const Offload& offload = candidate.offload;
  return std::tuple(candidate.accumulates && offload.gradients != Tier::device, offload.optimizer, offload.gradients,
                    offload.parameters, offload.activations, offload.parameter_layers, offload.activation_blocks,
                    offload.prefetch);
}

}  // namespace

bool expands_before(const Candidate& a, const Candidate& b) {
  return std::tuple(compute_key(a), offload_key(a)) < std::tuple(compute_key(b), offload_key(b));
}

int64_t accumulation_steps(const PlanRequest& request, int64_t micro_batch) {
  return (request.global_batch + micro_batch - 1) / micro_batch;
}

const Graph& Bounder::assembled(bool weight_copies) {
  auto at = assembled_.find(weight_copies);
  if (at == assembled_.end()) at = assembled_.emplace(weight_copies, assemble_training(request_, weight_copies)).first;
  return at->second;
}

const Graph& Bounder::expanded(const Candidate& candidate) {
  const bool computed = last_ && compute_key(*last_) == compute_key(candidate);
  const bool offloaded = computed && offload_key(*last_) == offload_key(candidate);
  last_.reset();  // should a pass throw
  if (computed) {
    set_sizes(computed_, candidate, false, nullptr);
  } else {
    computed_ = assembled(candidate.weight_copies);
    run_compute_passes(computed_, candidate, false, nullptr);
  }
  const bool offloads = candidate.offload.any();
  if (offloads && offloaded) {
    set_sizes(expanded_, candidate, false, nullptr);
  } else if (offloads) {
    expanded_ = computed_;
    run_offload_passes(expanded_, candidate, false, nullptr);
  }
  last_ = candidate;
  return offloads ? expanded_ : computed_;
}

void Bounder::forget() {
  last_.reset();
  computed_ = {};
  expanded_ = {};
}

std::vector<Bound> Bounder::bounds(Candidate candidate, std::span<const Offload> places,
                                   std::span<const int64_t> chunks) {
  candidate.loss_chunk = chunks.front();
  const Graph& graph = expanded(candidate);
  const Bindings bindings = graph.bounds();
  const Liveness liveness = analyze_liveness(graph, bindings, request_.facts);
  const Profiled profiled = profile_slots(graph, liveness, bindings, request_.facts);
  const int64_t trips = accumulation_steps(request_, candidate.micro_batch);
  const StreamTimeline timeline(graph, graph.find_program("train_step"), bindings, trips, request_.profile);
  std::vector<Bound> by_chunk;
  for (int64_t chunk : chunks) by_chunk.push_back(loss_bound(profiled, chunk, trips, request_));
  std::vector<Bound> out;
  for (const Offload& place : places) {
    const TierBytes lower = lower_peaks(liveness, place, request_.facts.alignment);
    const double seconds = timeline.seconds([&](Role role) { return place.tier_of(role); });
    for (const Bound& with_chunk : by_chunk) {
      Bound& bound = out.emplace_back(with_chunk);
      for (const Tier tier : kLowerTiers) bound.arenas.of(tier) = lower.of(tier);
      // To seven digits: copies that hide wholly cost nothing, in whatever order the seconds were added.
      bound.step_seconds = static_cast<double>(static_cast<float>(seconds + bound.step_seconds));
    }
  }
  return out;
}

Bound Bounder::bound(const Candidate& candidate) {
  const int64_t chunk = candidate.loss_chunk;
  return bounds(candidate, {&candidate.offload, 1}, {&chunk, 1}).front();
}

}  // namespace headroom
