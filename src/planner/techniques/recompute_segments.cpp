#include "passes/recompute_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "passes/row_runs.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/recompute.h"

namespace headroom::techniques {

namespace {

// Of a layer that is computed again, at each length: about 15 instructions, with adapters twice as many.
constexpr int64_t kLayerBytes = 24 * 1024;
constexpr int64_t kAdaptedLayerBytes = 48 * 1024;

int64_t most(const PlanRequest& request) { return most_segments(block_count(request.forward)); }

Verdict verdict(const PlanRequest& request) {
  if (most(request) > 0) return {};
  return {fmt::format("cannot be used with {} layers", block_count(request.forward)), "leave it out"};
}

void check(const PlanRequest& request, const std::string& setting) {
  check_setting(kRecomputeSegments, setting, {"on", "off"}, true);
  if (setting == "on" || setting == "off" || most(request) == 0) return;
  if (setting.size() > 6 || std::stoll(setting) > most(request))
    throw Error(ErrorKind::usage,
                fmt::format("--technique recompute-segments={} saves no more than fewer segments do with {} layers",
                            setting, block_count(request.forward)),
                fmt::format("at most {}", most(request)));
}

// Bytes per token of what the first layer hands to the second.
int64_t handed_on_bytes(const Graph& forward) {
  const TokenRows rows(forward);
  std::set<ValueId> made;
  int64_t bytes = 0;
  for (const NodeId id : forward.region(forward.find_program("forward")).nodes) {
    const Node& node = forward.node(id);
    if (node.block > 1) break;
    for (const ValueId input : node.inputs)
      if (node.block == 1 && made.erase(input) > 0) bytes += rows.bytes(input);
    for (const ValueId output : node.outputs)
      if (node.block == 0 && rows.has(output)) made.insert(output);
  }
  return bytes;
}

// Whether the inputs of layers are worth the time to plan it: at least a 32nd of the weights' bytes.
bool is_worth_planning(const PlanRequest& request) {
  constexpr int64_t kLeastPart = 32;
  const int64_t weights = request.parameters * (weights_are(request, WeightForm::codes) ? 1 : 4);
  const int64_t inputs = block_count(request.forward) * request.seq_length * handed_on_bytes(request.forward);
  return inputs >= weights / kLeastPart;
}

// Whether the inputs of layers are all that is kept of them, and nothing else makes room.
bool keeps_inputs_only(const Candidate& decided) { return is_frugal(decided) && !offloads(decided); }

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (!asked_for(request, kRecomputeSegments) || most(request) == 0) return {Setting{}};
  const int64_t pinned = pinned_number(request, kRecomputeSegments);
  return {Setting{pinned > 0 ? pinned : most(request)}};
}

std::vector<Setting> refinements(const PlanRequest& request, const Candidate& candidate) {
  const int64_t best = most(request);
  if (!pin(request, kRecomputeSegments.name).empty() || best == 0 || !keeps_inputs_only(candidate)) return {};
  if (has_fixed_keeps(request) || !is_worth_planning(request)) return {};
  if (best == 1) return {Setting{1}};
  return {Setting{best}, Setting{1}};
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  const Setting& setting = chosen[recompute_segments];
  if (!setting.taken())
    return {"off", most(request) == 0          ? "too few layers"
                   : has_fixed_keeps(request)  ? kWhyFixedKeeps
                   : keeps_inputs_only(chosen) ? "the inputs of all layers fit"
                                               : "tried when micro-batch 1 and recomputation are not enough"};
  return {std::to_string(setting.count), "segments of layers of which only the first one's input is kept",
          chosen.without(recompute_segments)};
}

int64_t process_bytes(const PlanRequest& request, const Candidate& candidate) {
  const int64_t segments = candidate[recompute_segments].count;
  if (segments == 0) return 0;
  int64_t layers = 0;
  for (const int64_t length : segment_lengths(block_count(request.forward), segments)) layers += length - 1;
  const int64_t layer = weights_are(request, WeightForm::adapted) ? kAdaptedLayerBytes : kLayerBytes;
  return lengths_of(request) * layers * layer;
}

}  // namespace

constinit const Technique recompute_segments{
    .info = &kRecomputeSegments,
    .ladder = {7},
    .check = check,
    .verdict = verdict,
    .choices = choices,
    .refinements = refinements,
    .layers_add_up = false,
    .pass =
        [](Graph& graph, const PlanRequest&, const Candidate& candidate) {
          headroom::recompute_segments(graph, candidate[recompute_segments].count);
        },
    .process_bytes = process_bytes,
    .told = told,
    .phrase =
        [](const Setting& setting) {
          return setting.taken() ? fmt::format("{} recomputed segments", setting.count) : std::string();
        },
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[recompute_segments].taken()) out.set("recompute_segments", chosen[recompute_segments].count);
        },
};

}  // namespace headroom::techniques
