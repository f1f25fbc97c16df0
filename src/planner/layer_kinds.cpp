#include "planner/layer_kinds.h"

#include <algorithm>
#include <tuple>

#include "ir/call_types.h"
#include "planner/technique.h"

namespace headroom {
namespace {

constexpr size_t kMostLayers = 1023;

// A node of a layer: its op and its work.
using Signature = std::vector<std::tuple<const Op*, double, double>>;

std::vector<Signature> signatures(const Graph& forward) {
  std::vector<Signature> out(static_cast<size_t>(block_count(forward)));
  if (out.size() > kMostLayers) return {};
  const Bindings bindings = forward.bounds();
  CallTypes types;
  for (const NodeId id : forward.region(forward.find_program("forward")).nodes) {
    const Node& node = forward.node(id);
    if (node.block < 0) continue;
    const Work work = node.op->work(types.of(forward, node, bindings));
    out[static_cast<size_t>(node.block)].emplace_back(node.op, work.flops, work.bytes);
  }
  return out;
}

}  // namespace

std::vector<uint8_t> layer_kinds(const Graph& forward) {
  const std::vector<Signature> layers = signatures(forward);
  const std::vector<uint8_t> one(static_cast<size_t>(block_count(forward)), 0);
  std::vector<uint8_t> out;
  const Signature* other = nullptr;
  for (const Signature& layer : layers) {
    const bool first = layer == layers.front();
    if (!first && other && layer != *other) return one;
    if (!first) other = &layer;
    out.push_back(first ? 0 : 1);
  }
  return layers.empty() ? one : out;
}

}  // namespace headroom
