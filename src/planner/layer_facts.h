// What each layer adds to the bytes and the seconds of a step under one option of recompute, measured on the graph in
// which every layer has that option. No clone of recomputation reaches beyond its layer, so these add up for mixes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/call_costs.h"
#include "ir/graph.h"
#include "memory/liveness.h"

namespace headroom {

// For a slot: the bytes alive if no layer keeps anything, and the bytes alive without what layers keep if they do.
struct BesideKept {
  int64_t none_kept = 0;
  int64_t kept = 0;

  // Counts a slot that holds `bytes`, `waiting` of them kept by layers.
  void count(int64_t bytes, int64_t waiting);
};

struct LayerFacts {
  std::vector<int64_t> saved;      // by layer: bytes kept from its forward to its backward pass
  std::vector<int64_t> work;       // by layer: the most alive in its slots, without what the layers before it keep
  std::vector<double> redone;      // by layer: seconds per step of recomputation
  std::vector<BesideKept> beside;  // by loss chunk: the maximum over the slots that belong to no layer
  std::vector<double> seconds;     // by loss chunk: of a step without recomputation
};

// What layers keep, on the timeline of a graph of training.
class KeptByLayers {
 public:
  KeptByLayers(const Graph& graph, const Liveness& liveness, int64_t alignment, int64_t layers);

  const std::vector<int64_t>& saved() const { return saved_; }
  // Bytes alive in a slot that layers keep.
  int64_t waiting(size_t slot) const { return waiting_[slot]; }
  // By layer, the most alive in its slots, without what the layers before it keep; adds the other slots except those of
  // losses to `beside`. `live`: by slot, the bytes alive on the device.
  std::vector<int64_t> work(std::span<const int64_t> live, BesideKept& beside) const;

 private:
  const Graph& graph_;
  const Liveness& liveness_;
  std::vector<int64_t> saved_, waiting_;
};

// By layer, the seconds of one run of the recomputed nodes.
std::vector<double> redone_seconds(const Graph& graph, const Bindings& bindings, CallCosts& costs, int64_t layers);

}  // namespace headroom
