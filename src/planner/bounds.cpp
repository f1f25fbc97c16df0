#include "planner/bounds.h"

#include <algorithm>

#include "base/bytes.h"
#include "cost/stream_timeline.h"
#include "ir/call_types.h"
#include "memory/liveness.h"
#include "ops/backend.h"
#include "optim/curvature.h"
#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/micro_batch.h"

namespace headroom {
namespace {

// A loss node and the bytes alive besides its scratch.
struct LossSlot {
  const Node* node = nullptr;
  size_t slot = 0;
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

// The most that each lower tier holds if values are kept there as `place` says.
TierBytes lower_peaks(const Liveness& liveness, const KeptIn& place, int64_t alignment) {
  TierBytes peaks;
  for (const Tier tier : kLowerTiers)
    if (place.uses(tier)) {
      const std::vector<int64_t> live =
          live_sums(liveness, tier_alignment(tier, alignment),
                    [&](const StorageLife& life) { return life.tier != Tier::device && place.of(life.role) == tier; });
      peaks.of(tier) = *std::max_element(live.begin(), live.end());
    }
  return peaks;
}

Profiled profile_slots(const Graph& graph, const Liveness& liveness, std::span<const int64_t> live,
                       const Bindings& bindings, const DeviceFacts& facts) {
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
                  slot,
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

// For a chunk of the loss: the device's arena, the seconds that the chunk adds to the graph's, and the bytes alive in
// the slot of each loss.
struct ChunkBound {
  Bound bound;
  std::vector<int64_t> losses;
};

ChunkBound bound_chunk(const Profiled& profiled, int64_t chunk, int64_t trips, const PlanRequest& request,
                       CallCosts& costs) {
  ChunkBound out;
  out.bound.arenas.device = profiled.without_loss;
  for (const LossSlot& loss : profiled.losses) {
    Attrs attrs = loss.node->attrs;
    const OpCall before{loss.inputs, loss.outputs, loss.node->attrs};
    attrs.set("chunk", chunk);
    const OpCall after{loss.inputs, loss.outputs, attrs};
    const int64_t scratch = align_up(scratch_bytes(*loss.node->op, after, request.facts), request.facts.alignment);
    out.losses.push_back(loss.others + scratch);
    out.bound.arenas.device = std::max(out.bound.arenas.device, out.losses.back());
    if (loss.trains)
      out.bound.step_seconds +=
          static_cast<double>(trips) * (costs.seconds(*loss.node->op, after) - costs.seconds(*loss.node->op, before));
  }
  out.bound.step_seconds *= passes_per_step(request.optimizer);
  return out;
}

// What each layer adds, and for each chunk the rest of the step; its seconds without the chunk's are `seconds`.
LayerFacts layer_facts(const KeptByLayers& kept, std::span<const int64_t> live, const Profiled& profiled,
                       std::span<const ChunkBound> by_chunk, double seconds, std::vector<double> redone) {
  LayerFacts out;
  BesideKept beside;
  out.saved = kept.saved();
  out.work = kept.work(live, beside);
  out.redone = std::move(redone);
  for (const double layer : out.redone) seconds -= layer;
  for (const ChunkBound& chunk : by_chunk) {
    out.beside.push_back(beside);
    for (size_t i = 0; i < chunk.losses.size(); ++i)
      out.beside.back().count(chunk.losses[i], kept.waiting(profiled.losses[i].slot));
    out.seconds.push_back(seconds + chunk.bound.step_seconds);
  }
  return out;
}

// Whether the candidates' settings of these parts are equal.
bool same(std::initializer_list<PipelinePart> parts, const Candidate& a, const Candidate& b) {
  for (const PipelinePart part : parts)
    for (const Technique* technique : techniques_of(part))
      if (a[*technique] != b[*technique]) return false;
  return true;
}

}  // namespace

bool expands_before(const Candidate& a, const Candidate& b) {
  for (const PipelinePart part :
       {PipelinePart::model, PipelinePart::products, PipelinePart::compute, PipelinePart::placement})
    for (const Technique* technique : techniques_of(part))
      if (a[*technique] != b[*technique]) return a[*technique] < b[*technique];
  return false;
}

const Graph& Bounder::assembled(const Candidate& candidate) {
  for (const auto& [made_for, graph] : assembled_)
    if (same({PipelinePart::model, PipelinePart::products}, made_for, candidate)) return graph;
  return assembled_.emplace_back(candidate, assemble_training(request_, candidate)).second;
}

const Graph& Bounder::expanded(const Candidate& candidate) {
  const Candidate graph = in_graph(request_, candidate);
  const bool computed =
      last_ && same({PipelinePart::model, PipelinePart::products, PipelinePart::compute}, *last_, graph);
  const bool placed = computed && same({PipelinePart::placement}, *last_, graph);
  last_.reset();  // in case a pass throws
  if (computed) {
    set_sizes(computed_, request_, candidate);
  } else {
    computed_ = assembled(candidate);
    run_compute_passes(computed_, request_, candidate);
  }
  const bool moves = offloads(candidate);
  if (moves && placed) {
    set_sizes(expanded_, request_, candidate);
  } else if (moves) {
    expanded_ = computed_;
    run_placement_passes(expanded_, request_, candidate);
  }
  last_ = graph;
  return moves ? expanded_ : computed_;
}

void Bounder::forget() {
  last_.reset();
  computed_ = {};
  expanded_ = {};
}

std::vector<Bound> Bounder::bounds(Candidate candidate, std::span<const Candidate> places,
                                   std::span<const int64_t> chunks, LayerFacts* facts) {
  set_loss_chunk_of(candidate, chunks.front());
  const Graph& graph = expanded(candidate);
  const Bindings bindings = graph.bounds();
  const Liveness liveness = training_liveness(graph, request_);
  const std::vector<int64_t> live =
      live_sums(liveness, request_.facts.alignment, [](const StorageLife& life) { return life.tier == Tier::device; });
  const Profiled profiled = profile_slots(graph, liveness, live, bindings, request_.facts);
  const int64_t trips = accumulation_steps(request_, micro_batch_of(candidate));
  const StreamTimeline timeline(graph, graph.find_program("train_step"), bindings, trips, costs_);
  const double passes = passes_per_step(request_.optimizer);
  std::vector<ChunkBound> by_chunk;
  for (int64_t chunk : chunks) by_chunk.push_back(bound_chunk(profiled, chunk, trips, request_, costs_));
  if (facts) {
    const int64_t layers = block_count(request_.forward);
    std::vector<double> redone = redone_seconds(graph, bindings, costs_, layers);
    for (double& seconds : redone) seconds *= static_cast<double>(trips) * passes;
    *facts = layer_facts(KeptByLayers(graph, liveness, request_.facts.alignment, layers), live, profiled, by_chunk,
                         timeline.seconds() * passes, std::move(redone));
  }
  std::vector<Bound> out;
  for (const Candidate& at : places) {
    const KeptIn place(at);
    const TierBytes lower = lower_peaks(liveness, place, request_.facts.alignment);
    const double seconds = timeline.seconds([&](Role role) { return place.of(role); }) * passes;
    for (const ChunkBound& with_chunk : by_chunk) {
      Bound& bound = out.emplace_back(with_chunk.bound);
      for (const Tier tier : kLowerTiers) bound.arenas.of(tier) = lower.of(tier);
      // To seven digits: copies that are completely hidden cost nothing, in whatever order the seconds were added.
      bound.step_seconds = static_cast<double>(static_cast<float>(seconds + bound.step_seconds));
    }
  }
  return out;
}

Bound Bounder::bound(const Candidate& candidate) {
  const int64_t chunk = loss_chunk_of(candidate);
  return bounds(candidate, {&candidate, 1}, {&chunk, 1}).front();
}

}  // namespace headroom
