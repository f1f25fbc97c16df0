// quantize-weights: the frozen matrices of the layers as codes of 4 or 8 bits.
//
// What: a matrix that a linear layer of the model's blocks multiplies by, and that is not trained, is kept as codes in
//   blocks with a scale each (base/block_codes.h). Products decode it tile by tile, forward and for the gradient of
//   their input; there is no copy of the matrix in a wider type, not even while it is loaded. Norms, biases, routers,
//   experts and tables of positions stay as they are; so do embedding and head, unless they are named too or a
//   checkpoint stores them as codes, and a model generates text on the CPU: no loss reads codes.
// Legal when: named, and nothing of the base is trained: with adapters (--lora-r), or without training. Lossy: the
//   weights are rounded to the nearest codes, once, when they are loaded.
// Placed here because: it must know what is frozen, and the precision passes must find the codes.
// Saves: of a weight's 32 bits all but 4.5 (nf4, fp4: blocks of 64), 4.13 (nf4-dq: the scales as 8-bit codes in blocks
//   of 256), 5 (int4: blocks of 32) or 8 (int8: a scale per row); in groups of N elements of a row: 32 / N more. Costs:
//   decoding, once per product and thread.
// Sources: Dettmers et al. 2023, "QLoRA", sections 3 and 4.
// Manuals: M3 (T22, T25).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "passes/coded_parts.h"
#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kQuantizeWeights{"quantize-weights", PassStage::model, TechniqueKind::lossy,
                                           "frozen matrices of the layers in 4 or 8 bits: nf4, nf4-dq, fp4, int8, "
                                           "int4; with other groups: int8-g128, int4-g64, int4-row; generate and "
                                           "serve, for embedding and head too: int8+embedding+head"};

// The linear layers of the model's blocks whose matrices may be codes, in program order: only linear layers read the
// matrix, and its result does not choose experts.
std::vector<NodeId> quantizable_layers(const Graph& graph, RegionId region);

// Stores these matrices as codes of `kind`, one of the forms above. `frozen`: the weights that are not trained; null:
// all. Returns how many there are.
int64_t quantize_weights(Graph& graph, RegionId region, std::string_view kind, const std::set<ValueId>* frozen);

// Stores the embedding and the head of a program without a loss as codes of the forms that `parts` names: the tables
// that tokens look up, and the matrices of products outside the blocks. One matrix that is both has the form of either.
// Returns the matrices. Throws Error(usage) if there is no such part, or two forms are named for one matrix.
std::vector<ValueId> quantize_embedding_and_head(Graph& graph, RegionId region, const CodedParts& parts);

}  // namespace headroom
