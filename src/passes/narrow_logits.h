// Logits of the loss in bf16 on a GPU, where the products are in bf16 anyway.
//
// What: sets attribute "logits" of the loss's gradient to bf16. Its first product then writes rounded logits, the
//   softmax reads half the bytes, and the gradient overwrites them. Sums, maxima and exponentials stay fp32 and fp64.
//     dx, losses, dw = linear_cross_entropy_grad(x, w, ...)   becomes   the same {logits = bf16}
//   Lossy, within what bf16-mixed and bf16-true allow: a logit l is off by at most 2^-9 |l|, a probability by a
//   relative 2^-9 |l|, before the gradient is rounded to bf16 as always. PyTorch's autocast rounds logits in the same
//   way.
// Legal when: precision is bf16-mixed or bf16-true on a GPU; the logits have no bias, and no hits are counted. Losses
//   without a gradient (evaluate) keep fp32 logits.
// Placed here because: after autodiff, which makes the gradient's node; before the passes on sizes, since scratch
//   depends on it.
// Saves: half of the logits' scratch. Costs: nothing.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on every node of the graph, for a device of these facts; on none for a CPU.
void narrow_logits(Graph& graph, const DeviceFacts& facts);

}  // namespace headroom
