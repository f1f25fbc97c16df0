// The plan of a server: how long sequences may be, how many are computed together, and a pool of KV blocks that uses
// the rest of the budget.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/lora_slots.h"
#include "planner/request.h"

namespace headroom {

struct ServingSize {
  int64_t positions = 0;  // most tokens of a sequence
  int64_t sequences = 0;  // of a step
  int64_t rows = 0;       // tokens of a step
  int64_t blocks = 0;     // of the pool
};

struct ServingQuestion {
  // The given sizes; others are chosen.
  std::optional<int64_t> positions, sequences, rows;
  int64_t model_positions = 0;
  int64_t block_tokens = 16;
  std::optional<int64_t> most_blocks;  // of the pool, if more would be useless
  LoraSlots lora;                      // of each step
  // The graph of a size: "load", then the steps, the largest first, whose KV pool has role kv_cache.
  std::function<Graph(const ServingSize&)> build;
  // The rows of a program of such a graph; 0 of "load".
  std::function<int64_t(const std::string& program)> rows_of;
  // Blocks after the pool in its tensors, for copies of blocks, for a size with any number of blocks. May be empty.
  std::function<int64_t(const ServingSize&)> parked;
  // Books the process's bytes for a size in a request.
  std::function<void(PlanRequest&, const ServingSize&)> book;

  int64_t table_blocks(int64_t positions_of) const { return (positions_of + block_tokens - 1) / block_tokens; }
  int64_t all_blocks(const ServingSize& size) const { return size.blocks + (parked ? parked(size) : 0); }
};

struct SizedServing {
  Plan plan;  // choices.micro_batch: rows of a step
  ServingSize size;
};

inline constexpr int64_t kServedSequences = 32;  // by default
inline constexpr int64_t kServedRows = 256;
inline constexpr int64_t kLeastPositions = 256;  // of a sequence without a given length, if the model has them

// Chooses in this order: rows and sequences as far as the smallest pool fits, from 256 rows of 32 sequences down to 16
// of one; the longest sequences, if no length is given, up to the model's positions; as many blocks as fit, at most
// twice what all sequences can fill, the rest for kept prefixes. The pool always holds one sequence of full length. If
// nothing fits, weights may be kept in lower tiers (weight_placement.h): the same choices with the weights there, then
// as many layers on the device as fit besides the blocks that all sequences can fill. minimum_bytes is exact: that
// budget is feasible, one byte less is not. Pure. Throws Error(usage) for pins that cannot be honoured.
SizedServing plan_steps(const PlanRequest& request, const ServingQuestion& question);

}  // namespace headroom
