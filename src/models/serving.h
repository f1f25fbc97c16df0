// Builds the graph of a server: steps over tokens of many sequences, with keys and values in pools of blocks.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "models/model_spec.h"

namespace headroom {

struct ServingShape {
  int64_t rows = 1;       // most tokens of a step
  int64_t sequences = 1;  // of a step; each has a block table
  int64_t logits = 1;     // most rows of a step whose logits are wanted
  int64_t blocks = 1;     // of the pool
  int64_t block_tokens = 16;
  int64_t positions = 1;  // most tokens of a sequence
  DType cache = DType::f32;

  int64_t table_blocks() const { return (positions + block_tokens - 1) / block_tokens; }
};

// Whether the model is an encoder, for which a server only makes embeddings.
inline bool is_served_encoder(const ModelSpec& spec) { return !spec.causal; }
// An encoder without its head; a checkpoint may still have the head's tensors.
ModelSpec without_head(ModelSpec spec);

// Elements of one row (token) of a pool.
int64_t serving_cache_width(const ModelSpec& spec, DType cache);

// The number of pools: one per layer; for an encoder a single one that the layers share, since nothing in it outlives
// its layer.
int64_t serving_pools(const ModelSpec& spec);

// The numbers of rows for which steps are built, descending: `rows`, and smaller ones so that few rows of a step are
// padding.
std::vector<int64_t> step_sizes(int64_t rows);
// The names of a step's program and of the data that it reads: "step_8", "ids.8".
std::string step_program(int64_t rows);
int64_t rows_of_step(std::string_view program);  // 0 for other programs
std::string step_data(std::string_view what, int64_t rows);

// Programs "load" and "step_N" for each N of step_sizes(). results[0] of a step are the f32[min(N, logits), 1, vocab]
// logits, results[1] the hidden states from which they are computed, [min(N, logits), 1, hidden] in the model's dtype.
// Persistent data values, written by the host before a step: "tables" i32[sequences, table_blocks], the blocks of the
// pool by position; and for each N, per row (in brackets: for padding):
//   ids.N        i32[N, 1]  the token (0)
//   positions.N  i32[N]     its position in its sequence (-1: attends to nothing)
//   angles.N     i32[N]     the same (0): the row of a table of positions must exist
//   slots.N      i32[N]     the row of the pool that its key and value go to (-1: none)
//   owners.N     i32[N]     its sequence, a row of `tables` (0)
//   wanted.N     i32[min(N, logits)]  the rows whose logits are wanted (0)
// The pool: "keys.L" and "values.L" [1, blocks * block_tokens, serving_cache_width()] for each layer L of
// serving_pools(). An encoder's step has whole sequences: positions.N holds the last position of the row's sequence,
// angles.N the row's own. There are no logits: results[0] are the hidden states. Throws Error(usage) for other models
// that do not predict the next token.
Graph build_serving(const ModelSpec& spec, const ServingShape& shape);

}  // namespace headroom
