// The inner solver: which layers get which option, for the least time in given bytes.
//
// Layers are of one or two kinds (a model whose attention is local in most layers has two). Layers early in a model
// keep their activations longest, so that among those of a kind the options stand in the order of what they keep, the
// least first. A mix is then how many layers of each kind have each of at most four options. For one kind, two options
// take any numbers of layers (in steps of one layer up to 96) and two more at most two each: an optimum of a knapsack
// of so many equal things is about a mix of two neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/layer_facts.h"

namespace headroom {

inline constexpr size_t kMostRuns = 4, kMostKinds = 2;

// For the layers of one kind: how many have which option, the first layers first; unused runs have none.
struct LayerRuns {
  std::array<uint8_t, kMostRuns> option{};
  std::array<int32_t, kMostRuns> layers{};
};

struct LayerMix {
  std::array<LayerRuns, kMostKinds> kinds{};
  int64_t saved = 0;  // bytes that all layers keep
  double redone = 0;  // seconds

  bool one_option() const;
  // The kind of each layer.
  std::vector<uint8_t> options(std::span<const uint8_t> kinds_of_layers) const;
};

// The mixes that no other beats in bytes kept and seconds: ascending in bytes, strictly descending in seconds. Of mixes
// whose bytes differ by less than a 2048th of the options' range, the fastest. `kinds`: each layer's, 0 or 1. All runs
// of a kind except one are multiples of `unit`.
std::vector<LayerMix> unbeaten_mixes(std::span<const LayerFacts> options, std::span<const uint8_t> kinds,
                                     int64_t unit = 1);

// The most bytes alive in slots of layers, each with its option.
int64_t work_of(std::span<const LayerFacts> facts, std::span<const uint8_t> options);

}  // namespace headroom
