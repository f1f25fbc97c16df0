// One run of the model over tokens of many sequences: the interface between scheduler and model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace headroom {

// The limits of a step, fixed by the plan.
struct StepLimits {
  int64_t rows = 0;           // tokens of one step
  int64_t sequences = 0;      // block tables of one step
  int64_t logits = 0;         // rows of one step for which there are logits
  int64_t blocks = 0;         // of the KV pool
  int64_t block_tokens = 16;  // positions of a block
  int64_t table_blocks = 0;   // most blocks of one sequence
  int64_t positions = 0;      // most tokens of one sequence: --max-model-len
  int64_t vocab = 0;
  int64_t park_slots = 0;  // blocks that the park area holds
  int64_t adapters = 0;    // slots of adapters
  int64_t hidden = 0;      // numbers of a row's hidden state; 0: not available
  // For an encoder, whose attention is bidirectional: a step takes whole sequences and returns only their hidden
  // states.
  bool whole_sequences = false;

  // Blocks that hold so many tokens of one sequence.
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_tokens - 1) / block_tokens; }
};

// A token and its position. Its key and value go to position `position` of its sequence, which is row `position %
// block_tokens` of block `tables[table][position / block_tokens]`; it sees all positions up to its own.
struct StepRow {
  int32_t token = 0;
  int32_t position = 0;
  int32_t table = 0;
  int32_t adapter = -1;  // the slot of its adapter; -1: none
};

struct Step {
  std::vector<StepRow> rows;                     // those of one table in ascending positions
  std::vector<std::span<const int32_t>> tables;  // blocks of the pool, in the order of positions
  std::vector<int32_t> wanted;                   // rows whose logits are requested, ascending
};

// Used by one thread. A row's results depend only on its sequence's tokens and adapter, bit for bit, not on the rest of
// the step, on how the sequence was split into steps, or on which blocks hold it.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const StepLimits& limits() const = 0;
  // Logits f32 [wanted, vocab], valid until the next call; nothing where there are hidden states alone. The step is
  // within the limits. No heap call after the first steps. Throws Error(run) as the device does.
  virtual std::span<const float> run(const Step& step) = 0;
  // Between steps: copies a block of the pool to a slot of the park area, and back, bit for bit; needs slots in
  // limits(). No heap call. Throws Error(run) naming the file if it cannot be written or read.
  virtual void park_block(int32_t block, int32_t slot) { HR_CHECK(false, "no slot {} for block {}", slot, block); }
  virtual void restore_block(int32_t slot, int32_t block) { HR_CHECK(false, "no slot {} for block {}", slot, block); }
  // For the rows requested in the last run: the inputs of the logits, f32 [wanted, hidden], valid until the next call.
  virtual std::span<const float> hidden_states() { return {}; }
};

}  // namespace headroom
