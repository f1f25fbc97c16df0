// Continuous batching: many sequences share the steps of a runner and the blocks of its KV pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "generate/sampler.h"
#include "generate/step_runner.h"

namespace headroom {

class GrammarMatcher;

// A token that could have been drawn.
struct RankedToken {
  int32_t id = 0;
  float logprob = 0;  // natural logarithm, of the softmax of the model's logits, before temperature and penalties
};

// A token of a sequence: one that was drawn, or, with prompt_logprobs, one of the prompt.
struct SequenceToken {
  int32_t id = 0;
  std::optional<float> logprob;   // where they were asked for; never of a prompt's first token
  std::vector<RankedToken> best;  // the most likely, falling, as many as were asked for
};

// no_token: its grammar cannot be followed. failed: anything else that went wrong.
enum class SequenceEnd : uint8_t { stop, length, cancelled, failed, no_token };

// Hears of one sequence, on the thread that steps; does not call the scheduler. What on_prompt and on_token throw ends
// the sequence with `failed`, with `no_token` where it has a grammar.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  // The prompt's tokens with their log-probabilities, before the first token; only with prompt_logprobs.
  virtual void on_prompt(std::vector<SequenceToken>) {}
  // The prompt's hidden state, f32 [hidden], valid during the call; only where pooling is asked for.
  virtual void on_embedding(std::span<const float>) {}
  // A token that was drawn; never one of the stop ids. False ends the sequence with `stop`: no further token is made.
  virtual bool on_token(const SequenceToken& token) = 0;
  // Once, at the end. `error` says what failed. `drawn`: tokens that were drawn, a stop id that ended the text among
  // them. `cached`: tokens of the prompt that the prefix index had.
  virtual void on_end(SequenceEnd end, int64_t drawn, int64_t cached, const std::string& error) = 0;
};

// The adapter of a sequence: the slot that holds it, and a number below -1 of its own that no other contents of a slot
// have had: blocks are shared among sequences of one number. `held` keeps the slot as it is until the sequence is gone.
struct SequenceAdapter {
  int32_t slot = -1;
  int32_t prefix = -1;  // -1: of the base
  std::shared_ptr<const void> held;
};
// Which hidden state of a prompt is wanted: none, its last token's, the mean of all, or its first token's, which is an
// encoder's to have.
enum class Pooling : uint8_t { none, last, mean, first };

// Ids of tokens, stop_ids apart, are of the vocabulary.
struct SequenceRequest {
  std::vector<int32_t> prompt;  // at least one token
  int64_t max_tokens = 16;      // 0: the prompt's log-probabilities only
  SamplingOptions sampling;     // the seed of this sequence
  std::vector<int32_t> stop_ids;
  int64_t min_tokens = 0;                   // no stop id is drawn before as many tokens
  std::shared_ptr<GrammarMatcher> grammar;  // none: the text may be anything
  int64_t best = -1;                        // log-probabilities of the drawn token and of this many likeliest; -1: none
  bool prompt_logprobs = false;
  SequenceAdapter adapter;
  Pooling pooling = Pooling::none;  // with max_tokens 0: the sequence ends with `length` once the prompt is read
  uint64_t client = 0;              // whom turns are shared among
  std::shared_ptr<SequenceListener> listener;
};

using SequenceId = uint64_t;

// never_fits: a prompt and its max_tokens exceed a sequence's positions or the pool, or the group most_waiting.
enum class Admission : uint8_t { taken, never_fits, queue_full };

// guaranteed: a sequence is admitted once all that it may need has room. balanced: once what it is expected to need
// has; where that was too little, others are parked (residents.h).
enum class AdmissionRule : uint8_t { guaranteed, balanced };

struct SchedulerOptions {
  int64_t most_waiting = 256;  // sequences that wait; more are refused as queue_full
  bool prefix_index = true;    // never where a step has whole sequences
  int64_t most_best = 20;      // the largest SequenceRequest::best
  int64_t most_passes = 16;    // how often others go before a sequence whose turn it is and that does not fit yet
  AdmissionRule rule = AdmissionRule::guaranteed;
  int64_t most_parks = 3;  // how often one sequence may be parked
};

// What /metrics shows. Counters never fall.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0, parked = 0;
  int64_t stalled = 0;  // of the running ones: those that got fewer blocks in the last step than they could use
  int64_t blocks = 0, blocks_used = 0, blocks_kept = 0;  // of the pool; held by sequences; kept for their prefix only
  int64_t prompt_tokens = 0, drawn_tokens = 0, prefix_queries = 0, prefix_hits = 0;  // tokens, of admitted sequences
  int64_t park_slots = 0, park_slots_used = 0;               // blocks that the park area holds at most, and now
  int64_t parks = 0, resumes = 0;                            // of sequences
  int64_t most_parks = 0;                                    // of one sequence
  int64_t blocks_saved = 0, blocks_loaded = 0;               // blocks that were copied to the park area, and back
  int64_t steps = 0, ended = 0, cancelled = 0, refused = 0;  // ended: however; refused: never_fits, queue_full
};

// Used by one thread. With AdmissionRule::guaranteed a sequence is admitted once the pool has blocks for its prompt and
// max_tokens together, so that no admitted sequence waits for blocks. With either rule none is recomputed or lost. A
// long prompt is read in chunks between the tokens of others (StepBuilder states the bounds). Clients take turns, and
// what does not fit yet is not passed for ever (WaitingLine). Blocks are shared between sequences of one adapter that
// begin with the same tokens; those of ended sequences are kept until others need them, the least recently used first.
// Where log-probabilities of a prompt, or the mean of its hidden states, are asked for, its blocks are computed in any
// case; one prompt of the former is read at a time.
//
// What a sequence gets is a function of its request alone: the tokens are those that `generate` draws with the same
// options and seed.
class Scheduler {
 public:
  // `runner` outlives the scheduler.
  Scheduler(StepRunner& runner, const SchedulerOptions& options);
  ~Scheduler();

  // Sequences that belong together (n choices, several prompts) are taken all or none. Fills `ids`.
  Admission add(std::vector<SequenceRequest> requests, std::vector<SequenceId>& ids);
  // Ends a sequence with `cancelled`; nothing for one that has ended.
  void cancel(SequenceId id);
  // Runs one step. False where nothing is to be done. A runner that throws ends the step's sequences with `failed`.
  bool step();
  // Ends everything that waits or runs with `failed`.
  void fail_all(const std::string& error);

  SchedulerCounts counts() const;
  // The most heap that a scheduler holds beside what came in the requests (prompts, options, grammars).
  static int64_t memory_bytes(const StepLimits& limits, const SchedulerOptions& options);
  // Throws InternalError unless every block is owned exactly as often as it is counted. Slow: for tests.
  void check() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
