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

// A candidate token.
struct RankedToken {
  int32_t id = 0;
  float logprob = 0;  // natural logarithm, of the softmax of the model's logits, before temperature and penalties
};

// A token of a sequence: a sampled one, or, with prompt_logprobs, one of the prompt.
struct SequenceToken {
  int32_t id = 0;
  std::optional<float> logprob;   // if requested; never for a prompt's first token
  std::vector<RankedToken> best;  // the most likely, in falling order, as many as requested
};

// no_token: its grammar cannot be followed. failed: anything else that went wrong.
enum class SequenceEnd : uint8_t { stop, length, cancelled, failed, no_token };

// Callbacks of one sequence, on the stepping thread; they must not call the scheduler. If on_prompt or on_token throws,
// the sequence ends with `failed`, or with `no_token` if it has a grammar.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  // The prompt's tokens with their log-probabilities, before the first token; only with prompt_logprobs.
  virtual void on_prompt(std::vector<SequenceToken>) {}
  // The prompt's hidden state, f32 [hidden], valid during the call; only if pooling is requested.
  virtual void on_embedding(std::span<const float>) {}
  // A sampled token; never one of the stop ids. False ends the sequence with `stop`: no further token is generated.
  virtual bool on_token(const SequenceToken& token) = 0;
  // Once, at the end. `error` says what failed. `drawn`: number of sampled tokens, including a stop id that ended the
  // text. `cached`: tokens of the prompt that the prefix index had.
  virtual void on_end(SequenceEnd end, int64_t drawn, int64_t cached, const std::string& error) = 0;
};

// The adapter of a sequence: its slot, and a number below -1 that identifies the slot's contents: blocks are shared
// only among sequences with the same number. `held` keeps the slot unchanged until the sequence is gone.
struct SequenceAdapter {
  int32_t slot = -1;
  int32_t prefix = -1;  // -1: the base
  std::shared_ptr<const void> held;
};
// Which hidden state of a prompt is requested: none, its last token's, the mean of all, or its first token's (encoders
// only).
enum class Pooling : uint8_t { none, last, mean, first };

// Token ids, except stop_ids, are within the vocabulary.
struct SequenceRequest {
  std::vector<int32_t> prompt;  // at least one token
  int64_t max_tokens = 16;      // 0: only the prompt's log-probabilities
  SamplingOptions sampling;     // with the seed of this sequence
  std::vector<int32_t> stop_ids;
  int64_t min_tokens = 0;                   // no stop id is sampled before so many tokens
  std::shared_ptr<GrammarMatcher> grammar;  // null: any text
  int64_t best = -1;                        // log-probabilities of each sampled token and this many likeliest; -1: none
  bool prompt_logprobs = false;
  SequenceAdapter adapter;
  Pooling pooling = Pooling::none;  // with max_tokens 0: the sequence ends with `length` once the prompt is read
  uint64_t client = 0;              // turns are shared among clients
  std::shared_ptr<SequenceListener> listener;
};

using SequenceId = uint64_t;

// never_fits: a prompt and its max_tokens exceed a sequence's positions or the pool, or the group most_waiting.
enum class Admission : uint8_t { taken, never_fits, queue_full };

// guaranteed: a sequence is admitted once all that it may need fits. balanced: once its expected need fits; if that
// turns out too little, sequences are parked (residents.h).
enum class AdmissionRule : uint8_t { guaranteed, balanced };

struct SchedulerOptions {
  int64_t most_waiting = 256;  // waiting sequences; more are refused as queue_full
  bool prefix_index = true;    // has no effect if a step takes whole sequences
  int64_t most_best = 20;      // the largest SequenceRequest::best
  int64_t most_passes = 16;    // how often others may pass a sequence whose turn it is and that does not fit yet
  AdmissionRule rule = AdmissionRule::guaranteed;
  int64_t most_parks = 3;  // how often one sequence may be parked
};

// Shown by /metrics. Counters never fall.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0, parked = 0;
  int64_t stalled = 0;  // running ones that got fewer blocks in the last step than they could use
  int64_t blocks = 0, blocks_used = 0, blocks_kept = 0;  // of the pool; held by sequences; kept only for their prefix
  int64_t prompt_tokens = 0, drawn_tokens = 0, prefix_queries = 0, prefix_hits = 0;  // tokens, of admitted sequences
  int64_t park_slots = 0, park_slots_used = 0;               // blocks that the park area can hold, and holds now
  int64_t parks = 0, resumes = 0;                            // of sequences
  int64_t most_parks = 0;                                    // of one sequence
  int64_t blocks_saved = 0, blocks_loaded = 0;               // blocks copied to the park area, and back
  int64_t steps = 0, ended = 0, cancelled = 0, refused = 0;  // ended: for any reason; refused: never_fits, queue_full
};

// Used by one thread. With AdmissionRule::guaranteed a sequence is admitted once the pool has blocks for its prompt and
// max_tokens together, so no admitted sequence waits for blocks. With either rule none is recomputed or lost. A long
// prompt is read in chunks between the tokens of others (StepBuilder states the bounds). Clients take turns, and a
// sequence that does not fit yet is not passed forever (WaitingLine). Blocks are shared between sequences of one
// adapter that begin with the same tokens; those of ended sequences are kept until others need them, the least recently
// used first. If log-probabilities of a prompt, or the mean of its hidden states, are requested, its blocks are always
// computed; one prompt of the former kind is read at a time.
//
// A sequence's results depend only on its request: the tokens are those that `generate` samples with the same options
// and seed.
class Scheduler {
 public:
  // `runner` outlives the scheduler.
  Scheduler(StepRunner& runner, const SchedulerOptions& options);
  ~Scheduler();

  // Sequences that belong together (n choices, several prompts) are accepted together or not at all. Fills `ids`.
  Admission add(std::vector<SequenceRequest> requests, std::vector<SequenceId>& ids);
  // Ends a sequence with `cancelled`; does nothing for one that has ended.
  void cancel(SequenceId id);
  // Runs one step. False if there is nothing to do. If the runner throws, the step's sequences end with `failed`.
  bool step();
  // Ends all waiting and running sequences with `failed`.
  void fail_all(const std::string& error);

  SchedulerCounts counts() const;
  // The most heap that a scheduler holds in addition to the contents of requests (prompts, options, grammars).
  static int64_t memory_bytes(const StepLimits& limits, const SchedulerOptions& options);
  // Throws InternalError unless every block is owned exactly as often as it is counted. Slow: for tests.
  void check() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
