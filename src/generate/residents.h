// The admitted sequences: which of them run, which are parked, and which gets the next block of the pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/block_store.h"
#include "generate/end_order.h"
#include "generate/expected_peak.h"
#include "generate/output_lengths.h"
#include "generate/scheduler.h"
#include "generate/sequence.h"
#include "generate/step_runner.h"

namespace headroom {

// Guaranteed: a sequence is admitted with all blocks that it may need promised; nothing of the following happens.
// Balanced: it is admitted once its expected need (OutputLengths) is available in addition to what the running ones are
// still expected to need. Blocks are given in the order of age, so that all can finish (EndOrder); age is that of the
// first admission and does not change. If a sequence cannot get a block, the youngest of the younger ones is parked
// that returns a block and fits the park area; if there is none, the sequence stalls: it has no rows in this step. The
// oldest never stalls and is never parked.
//
// A parked sequence resumes once its blocks and those that it is still expected to need are available, or once nothing
// runs; the oldest first. Nothing is admitted while one is parked or stalls. One that was parked most_parks times
// resumes once all that it may need can be promised, and is not parked again.
//
// So each sequence is parked at most most_parks times, and while it is parked or stalls it waits only for sequences
// that were admitted before it stopped, of which the oldest fills a position in every step. Used by one thread.
class Residents {
 public:
  // Called for a sequence that ends because of an error of the park area.
  using Failed = std::function<void(Sequence&, const std::string& error)>;

  Residents(StepRunner& runner, const SchedulerOptions& options, Failed failed);

  BlockStore& blocks() { return blocks_; }
  const BlockStore& blocks() const { return blocks_; }
  // By age.
  std::span<const std::unique_ptr<Sequence>> running() const { return running_; }
  std::span<const std::unique_ptr<Sequence>> parked() const { return parked_; }

  // Gives a sequence its first blocks if it can be admitted now; it must then enter.
  bool admit(Sequence& sequence, bool reuse);
  Sequence& enter(std::unique_ptr<Sequence> sequence);
  // Resumes parked sequences.
  void resume();
  // Whether a sequence may take a block of the index for which it has no block of its own yet.
  bool may_follow() const;
  // Gives the blocks for the running sequences' chunks, parks sequences, and shortens the chunks of those that get
  // fewer.
  void give_blocks();
  // The model has ended a sequence.
  void learn(const Sequence& sequence);
  Sequence* find(SequenceId id);
  void remove_ended();
  // Calls with each running and each parked sequence.
  void each(const std::function<void(Sequence&)>& call);

  void count(SchedulerCounts& counts) const;
  static int64_t memory_bytes(const StepLimits& limits, const SchedulerOptions& options);
  void check() const;

 private:
  bool balanced() const { return options_.rule == AdmissionRule::balanced; }
  bool loose() const;
  // The slacks of the running ones, with one more at that position in the order.
  void look();
  void look_with(const SequenceBlocks& more, size_t place);
  // After look_with(): whether all these are expected to finish without parking.
  bool expected_to_fit(const Sequence& more, size_t place);
  ExpectedCourse course(const Sequence& sequence, size_t place) const;
  bool return_oldest();
  bool has_room(const Sequence& parked, size_t place, bool whole);
  void give_tight();
  bool park_younger(size_t than);
  void park(size_t place);
  void give(Sequence& sequence);
  static size_t place_of(const Sequence& sequence, std::span<const std::unique_ptr<Sequence>> by_age);

  StepRunner& runner_;
  StepLimits limits_;
  SchedulerOptions options_;
  Failed failed_;
  BlockStore blocks_;
  EndOrder order_;
  OutputLengths lengths_;
  std::vector<std::unique_ptr<Sequence>> running_, parked_;  // by age; together at most most_running()
  std::vector<const SequenceBlocks*> by_age_;                // for one pass
  std::vector<ExpectedCourse> courses_;
  uint64_t admitted_ = 0;
  int64_t stalled_ = 0;  // sequences of this step that got fewer blocks than they could use
  int64_t parks_ = 0, resumes_ = 0, most_parks_ = 0, saved_ = 0, loaded_ = 0;
};

}  // namespace headroom
