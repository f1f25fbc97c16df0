// Chooses the work of the running sequences in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/sequence.h"
#include "generate/step_runner.h"

namespace headroom {

// First the next token of every sequence, then chunks of prompts. Half of the remaining rows, at least one, goes to the
// prompt that has been read longest; the rest to the prompts with the fewest tokens left, so that a short one overtakes
// a long one.
//
// The bounds, if at most most_running() sequences run: each decoding sequence gets a token every step, and no step has
// more than limits.rows rows, however long the prompts. At least max(1, (rows - running) / 2) tokens of the oldest
// prompt are read every step (with log-probabilities: as many of limits.logits), so each prompt is eventually read.
// Used by one thread.
class StepBuilder {
 public:
  explicit StepBuilder(const StepLimits& limits);

  // How many sequences can run so that each has a row, a table and a row of logits in every step.
  static int64_t most_running(const StepLimits& limits);

  // Sets `chunk` of every running sequence, in the order of admission. If a step takes whole sequences these are taken
  // in that order as far as they fit; the oldest always is.
  void choose(std::span<const std::unique_ptr<Sequence>> running);
  // The step of these chunks. Its tables are those of the sequences, which must be long enough and not move.
  const Step& build(std::span<const std::unique_ptr<Sequence>> running);

  static int64_t memory_bytes(const StepLimits& limits);

 private:
  void choose_whole(std::span<const std::unique_ptr<Sequence>> running) const;
  // The largest part of a prompt that `rows` rows and `logits` rows of logits allow; subtracts it from both.
  static int64_t chunk_of(const Sequence& sequence, int64_t& rows, int64_t& logits);

  StepLimits limits_;
  Step step_;
  std::vector<Sequence*> prompts_;  // of this step
};

}  // namespace headroom
