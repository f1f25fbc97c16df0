// Builds the graphs of a model from its spec.
#pragma once

#include "ir/graph.h"
#include "models/model_spec.h"

namespace headroom {

// Whether the model's batches say which of two texts each token belongs to: a classifier with several token types.
bool takes_pairs(const ModelSpec& spec);

// One micro-batch, forward only: symbols "batch" and "seq" with the given bounds; persistent weights (role parameter,
// named as in the checkpoint) and rotary table (role constant); a program "load" that fills the table and a program
// "forward" whose region carries one value, the f64[2] loss accumulator {sum of losses, targets}: params[0] and
// results[0]; of other objectives f64[3] with the targets that have the largest logit. A further persistent value
// "hyper" (f32[16], role data) holds the step's scalars (ops/step_scalars.h). The loss node takes hyper's loss scale,
// which its gradient needs. labels[b, s] of the batch, -100 where there is none: causal models predict it at s - 1;
// masked models at s; classifiers at s too, where the label is a class and s the position it is read at: the first for
// encoders, the last token for decoders. Encoders take trailing padding ids for padding. Throws Error(usage) for a
// model without a head.
Graph build_training_forward(const ModelSpec& spec, int64_t batch_bound, int64_t seq_bound);

// Token generation with a KV cache of `positions` rows per layer (dtype `cache`), all in one graph: programs "load",
// "prefill" (chunks of `chunk` tokens) and "decode" (one token). Persistent data values, written by the host before a
// program runs: "prefill_ids" i32[1, chunk], "decode_ids" i32[1, 1], "offset" i32[1] (rows of the cache already
// filled), "last" i32[1] (index in the chunk of the token whose logits are wanted). results[0] of both programs are the
// f32[1, 1, vocab] logits. Throws Error(usage) for models that predict no next token.
Graph build_generation(const ModelSpec& spec, int64_t positions, int64_t chunk, DType cache);

}  // namespace headroom
