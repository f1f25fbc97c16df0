// Chooses what the running sequences do in a step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/sequence.h"
#include "generate/step_runner.h"

namespace headroom {

// The next token of every sequence first, then chunks of prompts. Half of the rows that are left, at least one, goes to
// the prompt that has been read longest; the rest to the prompts with the fewest tokens left, so that a short one
// passes a long one.
//
// The bounds, where at most most_running() sequences run: each sequence with a token to draw draws one every step, and
// no step has more than limits.rows rows, however long the prompts. Of the oldest prompt at least max(1, (rows -
// running) / 2) tokens are read every step (of one whose log-probabilities are asked for: as many of limits.logits), so
// that each prompt is read in the end. Used by one thread.
class StepBuilder {
 public:
  explicit StepBuilder(const StepLimits& limits);

  // How many sequences can run so that each has a row, a table and a row of logits in every step.
  static int64_t most_running(const StepLimits& limits);

  // Sets `chunk` of every running sequence, in the order in which they were admitted. Where a step has whole sequences
  // these are taken in that order as far as they fit; the oldest always does.
  void choose(std::span<const std::unique_ptr<Sequence>> running);
  // The step of these chunks. Its tables are those of the sequences, which must be long enough and stay.
  const Step& build(std::span<const std::unique_ptr<Sequence>> running);

  static int64_t memory_bytes(const StepLimits& limits);

 private:
  void choose_whole(std::span<const std::unique_ptr<Sequence>> running) const;
  // The most of a prompt that `rows` rows and `logits` rows of logits allow; takes what it takes off both.
  static int64_t chunk_of(const Sequence& sequence, int64_t& rows, int64_t& logits);

  StepLimits limits_;
  Step step_;
  std::vector<Sequence*> prompts_;  // of this step
};

}  // namespace headroom
