// The sequences that were admitted: which of them run, which are parked, and who gets the next block of the pool.
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

// Guaranteed: a sequence is admitted with all blocks that it may need promised; nothing below happens.
//
// Balanced: it is admitted once what it is expected to need (OutputLengths) is available beside what those that run are
// expected to need yet. Blocks are given in the order of age, so that all can come to their end (EndOrder); the age is
// that of the first admission, and stays. Where a sequence cannot have a block, the youngest that is younger is parked,
// if it gives a block back and the park area has room for it; where there is none, the sequence stalls: it has no rows
// in this step. The oldest never stalls and is never parked.
//
// A parked sequence goes on once its blocks and what it is expected to need yet are available, or once nothing runs;
// the oldest first. Nothing is admitted while one is parked or stalls. One that was parked most_parks times goes on
// once all that it may need can be promised to it, and is not parked again.
//
// So each sequence is parked at most most_parks times, and waits while it is parked or stalls for sequences only that
// were admitted before it stopped, of which the oldest fills a position in every step. Used by one thread.
class Residents {
 public:
  // Hears of a sequence that the park area's error ends.
  using Failed = std::function<void(Sequence&, const std::string& error)>;

  Residents(StepRunner& runner, const SchedulerOptions& options, Failed failed);

  BlockStore& blocks() { return blocks_; }
  const BlockStore& blocks() const { return blocks_; }
  // By age.
  std::span<const std::unique_ptr<Sequence>> running() const { return running_; }
  std::span<const std::unique_ptr<Sequence>> parked() const { return parked_; }

  // Gives a sequence its first blocks if it can be admitted now; it has to enter then.
  bool admit(Sequence& sequence, bool reuse);
  Sequence& enter(std::unique_ptr<Sequence> sequence);
  // Lets parked sequences go on.
  void resume();
  // Whether a sequence may take a block of the index that it has no own block for yet.
  bool may_follow() const;
  // Gives the blocks for the running sequences' chunks, parks, and cuts the chunks of those that get fewer.
  void give_blocks();
  // A sequence has ended of itself.
  void learn(const Sequence& sequence);
  Sequence* find(SequenceId id);
  void remove_ended();
  // Calls with each, running and parked.
  void each(const std::function<void(Sequence&)>& call);

  void count(SchedulerCounts& counts) const;
  static int64_t memory_bytes(const StepLimits& limits, const SchedulerOptions& options);
  void check() const;

 private:
  bool balanced() const { return options_.rule == AdmissionRule::balanced; }
  bool loose() const;
  // The slacks of those that run, with one more at that place of the order.
  void look();
  void look_with(const SequenceBlocks& more, size_t place);
  // After look_with(): whether all these are expected to get through without parking.
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
  std::vector<const SequenceBlocks*> by_age_;                // of a look
  std::vector<ExpectedCourse> courses_;
  uint64_t admitted_ = 0;
  int64_t stalled_ = 0;  // sequences of this step that got fewer blocks than they could use
  int64_t parks_ = 0, resumes_ = 0, most_parks_ = 0, saved_ = 0, loaded_ = 0;
};

}  // namespace headroom
