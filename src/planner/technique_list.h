// Every technique, in the order in which its pass runs: by list, then by position in the list. A new one is declared
// and listed here, and nowhere else.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace headroom {

struct Technique;

namespace techniques {
extern const Technique packing, length_buckets, lora, freeze, quantize_weights, quantize_training, quantize_activations,
    qat, bf16_mixed, bf16_true, fp16_mixed, fp16_true;
extern const Technique matmul_precision, attention_order;
extern const Technique micro_batch, chunked_loss;
extern const Technique recompute, recompute_segments, vocabulary_slices, sequence_chunks, compress_activations,
    fused_optimizer, compress_gradients;
extern const Technique offload_activations, offload_optimizer, offload_gradients, offload_parameters, prefetch;
extern const Technique flash_attention;
}  // namespace techniques

namespace technique_lists {

// On the forward program, before autodiff.
inline constexpr const Technique* kModel[] = {
    &techniques::packing,               // hands attention and positions the segments of the batch
    &techniques::length_buckets,        // no pass
    &techniques::lora,                  // adds thin products to the targeted ones
    &techniques::freeze,                // marks the weights that autodiff trains
    &techniques::quantize_weights,      // stores others as codes
    &techniques::quantize_training,     // and trained ones
    &techniques::quantize_activations,  // acts on products with codes
    &techniques::qat,                   // rounds the operands of products; the precision's casts come after it
    &techniques::bf16_mixed,            // rewrites the forward graph; autodiff derives the matching backward pass
    &techniques::bf16_true,             // the same with the weights themselves in bf16
    &techniques::fp16_mixed,            // as bf16-mixed
    &techniques::fp16_true,
};
// After autodiff, so that they also apply to the gradients' products.
inline constexpr const Technique* kProducts[] = {
    &techniques::matmul_precision,
    &techniques::attention_order,  // no pass: limits the choice of attention's kernels
};
// The micro-batch bounds every shape; the loss's scratch depends on its chunk.
inline constexpr const Technique* kSizes[] = {&techniques::micro_batch, &techniques::chunked_loss};
// The order of computation.
inline constexpr const Technique* kCompute[] = {
    &techniques::recompute,             // drops activations; its clones read weights in the backward pass
    &techniques::recompute_segments,    // and what layers hand on; its clones are cut, too
    &techniques::vocabulary_slices,     // its calls on the loss stay whole
    &techniques::sequence_chunks,       // the clones join the runs that it cuts; updates follow all parts of a gradient
    &techniques::compress_activations,  // what those two keep
    &techniques::fused_optimizer,       // an update may only follow the last reader of its weight, clones included
    &techniques::compress_gradients,    // those that it leaves to outlive their layers
};
// The tiers of values.
inline constexpr const Technique* kPlacement[] = {
    &techniques::offload_activations,  // after recompute: recomputed values are not kept anywhere
    &techniques::offload_optimizer,    // after fused-optimizer, which moves updates and leaves no gradient to carry
    &techniques::offload_gradients,
    &techniques::offload_parameters,  // last: every reader of a weight is known
    &techniques::prefetch,            // no pass: the depth of the copies of those above
};
// Techniques that are always on.
inline constexpr const Technique* kAlways[] = {&techniques::flash_attention};

// The lists joined.
inline constexpr auto kAll = [] {
  std::array<const Technique*, std::size(kModel) + std::size(kProducts) + std::size(kSizes) + std::size(kCompute) +
                                   std::size(kPlacement) + std::size(kAlways)>
      all{};
  auto to = all.begin();
  const auto append = [&](std::span<const Technique* const> part) { to = std::copy(part.begin(), part.end(), to); };
  append(kModel), append(kProducts), append(kSizes), append(kCompute), append(kPlacement), append(kAlways);
  return all;
}();

}  // namespace technique_lists
}  // namespace headroom
