// Builds the graphs of a model from its spec.
#pragma once

#include <span>
#include <string>

#include "ir/graph.h"
#include "models/model_spec.h"

namespace headroom {

// Whether the model's batches say which of two texts each token belongs to: a classifier with several token types.
bool takes_pairs(const ModelSpec& spec);

// One micro-batch, forward only. Symbols "batch" and "seq" have the given bounds. Persistent values: the weights (role
// parameter, named as in the checkpoint), the rotary table (role constant), and "hyper" (f32[16], role data), which
// holds the step's scalars (ops/step_scalars.h). The program "load" fills the table. The region of the program
// "forward" carries one value, params[0] and results[0]: the loss accumulator f64[2] {sum of losses, targets}, or
// f64[3] for objectives other than language, with the number of targets whose logit is the largest. The loss node takes
// hyper's loss scale, which its gradient needs. labels[b, s] of the batch is -100 where there is no target. Causal
// models predict it at s - 1, masked models at s. Classifiers predict it at s too: there the label is a class and s the
// position at which it is read, the first for encoders and the last token for decoders. Encoders treat trailing padding
// ids as padding. Throws Error(usage) for a model without a head.
Graph build_training_forward(const ModelSpec& spec, int64_t batch_bound, int64_t seq_bound);

// Token generation with a KV cache of `positions` rows per layer (dtype `cache`), all in one graph: programs "load", a
// prefill for each of `chunks` (so many tokens at once) and "decode" (one token). Persistent data values, written by
// the host before a program runs: the program's name with "_ids", i32[1, tokens], "offset" i32[1] (rows of the cache
// already filled), "last" i32[1] (index in the chunk of the token whose logits are wanted). results[0] of each program
// are the f32[1, 1, vocab] logits. Throws Error(usage) for models that do not predict the next token.
Graph build_generation(const ModelSpec& spec, int64_t positions, std::span<const int64_t> chunks, DType cache);
inline Graph build_generation(const ModelSpec& spec, int64_t positions, int64_t chunk, DType cache) {
  return build_generation(spec, positions, std::span(&chunk, 1), cache);
}
// The name of a prefill: "prefill" for the first of `chunks`, "prefill@64" for another.
std::string prefill_program(std::span<const int64_t> chunks, size_t which);

}  // namespace headroom
