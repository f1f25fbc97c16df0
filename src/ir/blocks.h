// Layers: which blocks of a graph have the same structure, and where the blocks are if a graph names none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Blocks of equal structure: a technique chosen for the class is planned once and applied to each of its blocks.
struct BlockClass {
  uint64_t hash = 0;            // of the structure: the same in every run and on every machine
  std::vector<int32_t> blocks;  // ascending
};

// Groups the block ids (Node::block) of a region's nodes by structure: ops, attributes, stages, result types and roles,
// bodies of loops, and wiring relative to the block. A value made in the block is identified by its producer; one from
// outside by type, role and the order of first use, so that the first layer (fed by the embedding) equals the second
// (fed by the first). Names do not matter. Structures are compared in full, not only by hash. Classes are ordered by
// their smallest block; nodes without a block are in no class. Linear.
std::vector<BlockClass> block_classes(const Graph& graph, RegionId region);

// Finds the repeated layers of a flat region and returns a block id (0, 1, ...) for each of its node positions, kNone
// for the nodes before and after the layers; all kNone if nothing repeats. Ignores existing block ids.
//
// Every node is hashed without its wiring (op, attributes, stage, types, which inputs are persistent). For each period
// p the maximal runs with h[i] == h[i + p] are candidates. They are tried in the order of covered length (whole periods
// only; longest first), then smaller period, then earlier start. If a run is longer than its whole periods, the
// boundary is placed where the fewest values cross it. A candidate is accepted if at least two consecutive blocks have
// equal structure as in block_classes() and each reads a value made in the previous one (so three parallel projections
// are not layers). O(n^2 / 2) comparisons of hashes for n nodes.
std::vector<int32_t> find_repeated_blocks(const Graph& graph, RegionId region);

// Writes one block id per node position of the region into its nodes.
void set_blocks(Graph& graph, RegionId region, std::span<const int32_t> blocks);

}  // namespace headroom
