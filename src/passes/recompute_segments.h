// recompute-segments (Chen et al. 2016, section 4.1): of a segment of consecutive layers only the first one's input is
// kept; before the segment's backward pass the inputs of its other layers are computed from it.
//
// What: in the bodies of the loops over micro-batches, a value that one layer of a segment hands to the next and that
//   only the segment's backward pass reads is computed again, once, before the backward pass of the segment's last
//   layer. Example, a segment of layers 0 and 1:
//     x1 = layer0(x0); x2 = layer1(x1)   ...   dx1 = layer1_grad(x1, dx2); dx0 = layer0_grad(x0, dx1)
//   becomes
//     x1 = layer0(x0); x2 = layer1(x1)   ...   y1 = layer0(x0); dx1 = layer1_grad(y1, dx2); dx0 = layer0_grad(x0, dx1)
//   Layers after the last segment keep their inputs, because their backward pass comes first. Segments get shorter by a
//   layer each: when the backward pass of segment s begins, the inputs of s segments are kept, and those of its own
//   layers are alive. Equal sums need least.
// Legal when: the clones compute the same bits: same op, attributes and inputs. Nodes with effects, values read outside
//   the segment's backward pass, and what recompute keeps inside a layer stay as they are.
// Placed here because: after recompute, whose clones then read the inputs that are computed again; before
//   sequence-chunks, which computes these clones in parts, too.
// Saves: with L layers about L - sqrt(2 L) of their inputs, which is what recompute leaves at one sequence per
//   micro-batch. Costs: one forward pass of a layer for each input that is saved.
// Manuals: M0 M1 M3 M4 (T06).
#pragma once

#include <cstdint>
#include <vector>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kRecomputeSegments{"recompute-segments", PassStage::schedule, TechniqueKind::exact,
                                             "keep one input for several layers and compute the others again"};

// The layers of each of so many segments, the first layers first; the layers that remain are in none.
std::vector<int64_t> segment_lengths(int64_t layers, int64_t segments);

// The least number of segments with which the fewest inputs of layers are alive at once; 0 if none saves anything.
int64_t most_segments(int64_t layers);

// Returns the number of values that are computed again.
int64_t recompute_segments(Graph& graph, int64_t segments);

}  // namespace headroom
