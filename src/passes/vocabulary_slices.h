// vocabulary-slices (Wijmans et al., "Cut your losses in large-vocabulary language models", 2024, over the tiers of
// ZeRO-Infinity, Rajbhandari et al. 2021, section 5): compute what reads or adds to a row for each entry of the
// vocabulary for one slice of these rows after another, so that embedding, head and their gradients are on the device a
// slice at a time.
//
// What: the loss and its gradient become calls on slices of the head's rows (ir/row_slice.h): each adds its logits to
//   the sums of the rows' softmaxes; then the losses are known; then each adds its share of dx, and its rows of the
//   head's gradient. Example, two slices:
//     dx, l, dw' = linear_cross_entropy_grad(x, w, labels, scale, losses, dw)
//   becomes
//     s1 = cross_entropy_slice(x, w, labels) rows=n first_row=0;  s = cross_entropy_slice(x, w, labels, s1) first_row=n
//     l = cross_entropy_sum(s, labels, losses)
//     d1, dw1 = cross_entropy_slice_grad(x, w, labels, s, scale, dw) rows=n first_row=0
//     dx, dw' = cross_entropy_slice_grad(x, w, labels, s, scale, d1, dw1) rows=n first_row=n
//   dx is summed in f32 and then rounded to x's dtype. Other ops that add up over a matrix's rows (Op::summed_slices():
//   the lookup of embeddings and its gradient, squared norms) become calls on slices, too. A slice takes as much as the
//   largest matrix of a layer, whose windows (device_windows.h) are needed in any case.
// Legal when: the head is stored densely, a row for each entry, without a bias.
// Reassociating: the sums of the softmax, of dx and of the norm are split at the slices.
// Placed here because: after recompute; before sequence-chunks, which leaves these calls whole, so that the head is
// read
//   twice and not twice for each part; before fused-optimizer, which needs the last node that adds to a gradient, and
//   before the offload passes, which give each call windows of its slice.
// Saves: all but two slices of head, embedding and gradient where they are on a lower tier. Costs: the logits are
//   computed twice, and the head is read twice, from its tier.
// Manuals: M0 (T03).
#pragma once

#include <cstdint>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kVocabularySlices{"vocabulary-slices", PassStage::schedule, TechniqueKind::reassociating,
                                            "use embedding and head a slice of the vocabulary at a time"};

// The head of a graph's loss, and into how many slices it is cut: 0 if it has another form.
struct SlicedHead {
  int64_t entries = 0;
  int64_t slices = 0;
};
SlicedHead sliced_head(const Graph& graph);

// `bytes`: of a slice as f32, at least (update_slices.h). Returns the number of nodes that are sliced.
int slice_vocabulary(Graph& graph, int64_t bytes);

}  // namespace headroom
