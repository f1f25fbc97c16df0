#include "generate/scheduler.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "generate/log_probabilities.h"
#include "generate/residents.h"
#include "generate/sequence.h"
#include "generate/step_builder.h"
#include "generate/token_drawer.h"
#include "generate/waiting_line.h"
#include "grammar/grammar_matcher.h"

namespace headroom {
namespace {

void check_request(const SequenceRequest& request, const StepLimits& limits, const SchedulerOptions& options) {
  const auto known = [&](int32_t id) { return id >= 0 && id < limits.vocab; };
  HR_CHECK(!request.prompt.empty() && request.listener && request.max_tokens >= 0 && request.best <= options.most_best,
           "a prompt of {} tokens, {} to draw, {} likeliest", request.prompt.size(), request.max_tokens, request.best);
  HR_CHECK(request.adapter.slot >= -1 && request.adapter.slot < limits.adapters && request.adapter.prefix < 0 &&
               (request.adapter.slot < 0) == (request.adapter.prefix == -1),
           "slot {} of {}, prefixes of {}", request.adapter.slot, limits.adapters, request.adapter.prefix);
  for (const int32_t id : request.prompt) HR_CHECK(known(id), "token {} of a vocabulary of {}", id, limits.vocab);
  for (const auto& [id, bias] : request.sampling.logit_bias)
    HR_CHECK(known(id), "bias for token {} of a vocabulary of {}", id, limits.vocab);
  HR_CHECK(
      request.pooling == Pooling::none || (limits.hidden > 0 && request.max_tokens == 0 && !request.prompt_logprobs),
      "a hidden state of {} numbers, {} tokens to draw", limits.hidden, request.max_tokens);
  HR_CHECK(limits.whole_sequences ? request.pooling != Pooling::none : request.pooling != Pooling::first,
           "pooling {} of {}", static_cast<int>(request.pooling), limits.whole_sequences ? "an encoder" : "a decoder");
  HR_CHECK(request.sampling.repetition_penalty > 0, "repetition penalty {}", request.sampling.repetition_penalty);
}

// If tokens also see those after them, blocks cannot be shared.
SchedulerOptions options_for(SchedulerOptions options, const StepLimits& limits) {
  options.prefix_index = options.prefix_index && !limits.whole_sequences;
  return options;
}

}  // namespace

class Scheduler::Parts {
 public:
  Parts(StepRunner& runner, const SchedulerOptions& options);

  Admission add(std::vector<SequenceRequest>& requests, std::vector<SequenceId>& ids);
  void cancel(SequenceId id);
  bool step();
  void fail_all(const std::string& error);
  SchedulerCounts counts() const;
  void check() const;

 private:
  bool can_fit(const SequenceRequest& request) const;
  void admit();
  bool promise_blocks(Sequence& sequence);
  void start(std::unique_ptr<Sequence> sequence);
  void follow_others();
  // The result of a step for one sequence, with the rows of logits that it requested.
  void advance(Sequence& sequence, std::span<const float> logits);
  void hand_out(std::span<const float> logits);
  void draw(Sequence& sequence, std::span<const float> logits);
  // The same for a sequence whose hidden state is requested.
  void pool(Sequence& sequence, std::span<const float> states);
  void tell_scores(Sequence& sequence);
  void end(Sequence& sequence, SequenceEnd how, const std::string& error = {});
  std::span<const std::unique_ptr<Sequence>> running() const { return residents_.running(); }
  size_t vocab() const { return static_cast<size_t>(limits_.vocab); }

  StepRunner& runner_;
  StepLimits limits_;
  SchedulerOptions options_;
  Residents residents_;
  WaitingLine waiting_;
  StepBuilder builder_;
  TokenDrawer drawer_;
  LogProbabilities log_probabilities_;
  int64_t scoring_ = 0;  // sequences whose prompt's log-probabilities are being computed
  SequenceId last_id_ = 0;
  SchedulerCounts counts_;
};

Scheduler::Parts::Parts(StepRunner& runner, const SchedulerOptions& options)
    : runner_(runner),
      limits_(runner.limits()),
      options_(options_for(options, limits_)),
      residents_(runner, options_,
                 [this](Sequence& sequence, const std::string& error) { end(sequence, SequenceEnd::failed, error); }),
      waiting_(options.most_passes),
      builder_(limits_),
      drawer_(limits_.vocab),
      log_probabilities_(limits_.vocab, options.most_best) {
  HR_CHECK(StepBuilder::most_running(limits_) > 0 && limits_.block_tokens > 0, "limits that hold no sequence");
}

bool Scheduler::Parts::can_fit(const SequenceRequest& request) const {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt > limits_.positions || request.max_tokens > limits_.positions - prompt) return false;
  return limits_.blocks_for(Sequence::most_filled(prompt, request)) <= std::min(limits_.blocks, limits_.table_blocks);
}

Admission Scheduler::Parts::add(std::vector<SequenceRequest>& requests, std::vector<SequenceId>& ids) {
  ids.clear();
  for (const SequenceRequest& request : requests) check_request(request, limits_, options_);
  const auto count = static_cast<int64_t>(requests.size());
  const bool fit = count <= options_.most_waiting &&
                   std::ranges::all_of(requests, [&](const SequenceRequest& request) { return can_fit(request); });
  if (!fit || waiting_.size() + count > options_.most_waiting) {
    counts_.refused += count;
    return fit ? Admission::queue_full : Admission::never_fits;
  }
  for (SequenceRequest& request : requests) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = ++last_id_;
    sequence->tokens = std::move(request.prompt);
    sequence->prompt = static_cast<int64_t>(sequence->tokens.size());
    sequence->request = std::move(request);
    sequence->blocks.root = sequence->request.adapter.prefix;
    ids.push_back(sequence->id);
    waiting_.push(std::move(sequence));
  }
  return Admission::taken;
}

void Scheduler::Parts::cancel(SequenceId id) {
  if (const std::unique_ptr<Sequence> waiting = waiting_.remove(id)) return end(*waiting, SequenceEnd::cancelled);
  if (Sequence* const sequence = residents_.find(id)) end(*sequence, SequenceEnd::cancelled);
  residents_.remove_ended();
}

void Scheduler::Parts::fail_all(const std::string& error) {
  residents_.each([&](Sequence& sequence) { end(sequence, SequenceEnd::failed, error); });
  residents_.remove_ended();
  while (const std::unique_ptr<Sequence> waiting = waiting_.remove_any()) end(*waiting, SequenceEnd::failed, error);
}

bool Scheduler::Parts::promise_blocks(Sequence& sequence) {
  if (sequence.request.prompt_logprobs && scoring_ > 0) return false;
  return residents_.admit(sequence, !sequence.wants_all());
}

void Scheduler::Parts::admit() {
  while (static_cast<int64_t>(running().size()) < StepBuilder::most_running(limits_)) {
    std::unique_ptr<Sequence> next = waiting_.take([this](Sequence& first) { return promise_blocks(first); });
    if (!next) break;
    start(std::move(next));
  }
  HR_CHECK(!running().empty() || (waiting_.size() == 0 && residents_.parked().empty()),
           "{} sequences wait, {} are parked, and none runs", waiting_.size(), residents_.parked().size());
}

void Scheduler::Parts::start(std::unique_ptr<Sequence> started) {
  Sequence& sequence = residents_.enter(std::move(started));
  const SequenceRequest& request = sequence.request;
  sequence.tokens.reserve(static_cast<size_t>(sequence.prompt + request.max_tokens));
  sequence.filled = sequence.cached = sequence.blocks.indexed * limits_.block_tokens;
  counts_.prompt_tokens += sequence.prompt;
  if (sequence.pools()) sequence.pooled.resize(static_cast<size_t>(limits_.hidden), 0);
  if (options_.prefix_index && !sequence.wants_all()) {
    counts_.prefix_queries += sequence.prompt;
    counts_.prefix_hits += sequence.cached;
  }
  if (request.prompt_logprobs) {
    sequence.scoring = true;
    ++scoring_;
    sequence.scores.reserve(static_cast<size_t>(sequence.prompt));
    sequence.scores.push_back({sequence.tokens.front(), std::nullopt, {}});
  }
}

// A prompt whose beginning another sequence has computed by now continues after it.
void Scheduler::Parts::follow_others() {
  if (limits_.whole_sequences || !residents_.may_follow()) return;
  for (const auto& sequence : running()) {
    if (sequence->wants_all() || sequence->drawn > 0) continue;
    const int64_t before = sequence->filled;
    while (residents_.blocks().follow(sequence->blocks, std::span(sequence->tokens)))
      sequence->filled = sequence->blocks.indexed * limits_.block_tokens;
    sequence->cached += sequence->filled - before;
    if (options_.prefix_index) counts_.prefix_hits += sequence->filled - before;
  }
}

bool Scheduler::Parts::step() {
  const int64_t ended_before = counts_.ended;
  residents_.resume();
  admit();
  for (const auto& sequence : running()) {
    const GrammarMatcher* grammar = sequence->request.grammar.get();
    if (sequence->drawn == 0 && sequence->filled == sequence->cached && grammar && grammar->must_end())
      end(*sequence, SequenceEnd::stop);
    else if (!sequence->draws() && !sequence->pools() && (!sequence->scoring || sequence->prompt == 1))
      advance(*sequence, {});
  }
  residents_.remove_ended();
  follow_others();
  builder_.choose(running());
  residents_.give_blocks();
  const Step& step = builder_.build(running());
  if (step.rows.empty()) return counts_.ended != ended_before;
  ++counts_.steps;
  std::span<const float> logits;
  try {
    logits = runner_.run(step);
    HR_CHECK(limits_.whole_sequences || logits.size() == step.wanted.size() * vocab(), "{} logits for {} rows",
             logits.size(), step.wanted.size());
  } catch (const std::exception& error) {
    for (const auto& sequence : running())
      if (sequence->chunk > 0) end(*sequence, SequenceEnd::failed, error.what());
    residents_.remove_ended();
    return true;
  }
  hand_out(logits);
  residents_.remove_ended();
  return true;
}

// Gives each sequence its requested rows.
void Scheduler::Parts::hand_out(std::span<const float> logits) {
  const auto width = static_cast<size_t>(limits_.hidden);
  size_t row = 0;
  std::span<const float> states;
  for (const auto& sequence : running()) {
    size_t wanted = 0;
    for (int64_t at = sequence->filled; at < sequence->filled + sequence->chunk; ++at) wanted += sequence->wants(at);
    const bool pools = sequence->chunk > 0 && sequence->pools();
    if (pools && wanted > 0 && states.empty()) states = runner_.hidden_states();
    if (pools)
      pool(*sequence, wanted == 0 ? std::span<const float>() : states.subspan(row * width, wanted * width));
    else if (sequence->chunk > 0)
      advance(*sequence, logits.subspan(row * vocab(), wanted * vocab()));
    row += wanted;
  }
}

void Scheduler::Parts::pool(Sequence& sequence, std::span<const float> states) {
  sequence.filled += sequence.chunk;
  residents_.blocks().commit(sequence.blocks, sequence.tokens, sequence.filled);
  const size_t width = sequence.pooled.size();
  for (size_t i = 0; i < states.size(); ++i) sequence.pooled[i % width] += static_cast<double>(states[i]);
  if (sequence.filled < sequence.prompt) return;
  const double rows = sequence.request.pooling == Pooling::mean ? static_cast<double>(sequence.prompt) : 1;
  std::vector<float> embedding(width);
  for (size_t i = 0; i < width; ++i) embedding[i] = static_cast<float>(sequence.pooled[i] / rows);
  try {
    sequence.request.listener->on_embedding(embedding);
    end(sequence, SequenceEnd::length);
  } catch (const std::exception& error) {
    end(sequence, SequenceEnd::failed, error.what());
  }
}

void Scheduler::Parts::advance(Sequence& sequence, std::span<const float> logits) {
  sequence.filled += sequence.chunk;
  residents_.blocks().commit(sequence.blocks, sequence.tokens, sequence.filled);
  try {
    while (sequence.scoring && !logits.empty() && static_cast<int64_t>(sequence.scores.size()) < sequence.prompt) {
      const int32_t id = sequence.tokens[sequence.scores.size()];
      const int64_t ranked = std::max<int64_t>(sequence.request.best, 0);
      sequence.scores.push_back(log_probabilities_.score(logits.first(vocab()), id, ranked));
      logits = logits.subspan(vocab());
    }
    if (sequence.scoring && static_cast<int64_t>(sequence.scores.size()) == sequence.prompt) tell_scores(sequence);
    if (!logits.empty())
      draw(sequence, logits);
    else if (!sequence.draws() && !sequence.scoring)
      end(sequence, SequenceEnd::length);
  } catch (const std::exception& error) {
    end(sequence, sequence.request.grammar ? SequenceEnd::no_token : SequenceEnd::failed, error.what());
  }
}

void Scheduler::Parts::tell_scores(Sequence& sequence) {
  sequence.scoring = false;
  --scoring_;
  sequence.request.listener->on_prompt(std::move(sequence.scores));
}

void Scheduler::Parts::draw(Sequence& sequence, std::span<const float> logits) {
  const SequenceRequest& request = sequence.request;
  GrammarMatcher* const grammar = request.grammar.get();
  const std::span<const int32_t> banned =
      sequence.drawn < request.min_tokens ? request.stop_ids : std::span<const int32_t>();
  const int32_t id =
      drawer_.draw(request.sampling, logits, sequence.tokens, static_cast<size_t>(sequence.prompt), grammar, banned);
  ++sequence.drawn;
  ++counts_.drawn_tokens;
  if (std::ranges::find(request.stop_ids, id) != request.stop_ids.end()) return end(sequence, SequenceEnd::stop);
  SequenceToken token{id, std::nullopt, {}};
  if (request.best >= 0) token = log_probabilities_.score(logits, id, request.best);
  sequence.tokens.push_back(id);
  if (grammar) grammar->accept(id);
  const bool goes_on = request.listener->on_token(token);
  if (!goes_on || (grammar && grammar->must_end()))
    end(sequence, SequenceEnd::stop);
  else if (sequence.drawn == request.max_tokens)
    end(sequence, SequenceEnd::length);
}

void Scheduler::Parts::end(Sequence& sequence, SequenceEnd how, const std::string& error) {
  HR_CHECK(!sequence.ended, "sequence {} ends twice", sequence.id);
  sequence.ended = true;
  if (sequence.scoring) --scoring_;
  sequence.scoring = false;
  residents_.blocks().release(sequence.blocks);
  if (how == SequenceEnd::stop || how == SequenceEnd::length) residents_.learn(sequence);
  ++counts_.ended;
  if (how == SequenceEnd::cancelled) ++counts_.cancelled;
  sequence.request.listener->on_end(how, sequence.drawn, sequence.cached, error);
}

SchedulerCounts Scheduler::Parts::counts() const {
  SchedulerCounts counts = counts_;
  counts.waiting = waiting_.size();
  residents_.count(counts);
  return counts;
}

void Scheduler::Parts::check() const {
  int64_t scoring = 0;
  for (const auto& list : {residents_.running(), residents_.parked()})
    for (const auto& sequence : list) {
      const auto tokens = static_cast<int64_t>(sequence->tokens.size());
      scoring += sequence->scoring ? 1 : 0;
      HR_CHECK(!sequence->ended && sequence->filled < tokens && tokens == sequence->prompt + sequence->drawn,
               "sequence {}: {} of {} tokens, {} of them the prompt's, {} drawn", sequence->id, sequence->filled,
               tokens, sequence->prompt, sequence->drawn);
    }
  HR_CHECK(scoring == scoring_, "{} prompts are scored, {} counted", scoring, scoring_);
  residents_.check();
  waiting_.check();
}

Scheduler::Scheduler(StepRunner& runner, const SchedulerOptions& options)
    : parts_(std::make_unique<Parts>(runner, options)) {}
Scheduler::~Scheduler() = default;

Admission Scheduler::add(std::vector<SequenceRequest> requests, std::vector<SequenceId>& ids) {
  return parts_->add(requests, ids);
}
void Scheduler::cancel(SequenceId id) { parts_->cancel(id); }
bool Scheduler::step() { return parts_->step(); }
void Scheduler::fail_all(const std::string& error) { parts_->fail_all(error); }
SchedulerCounts Scheduler::counts() const { return parts_->counts(); }
void Scheduler::check() const { parts_->check(); }

int64_t Scheduler::memory_bytes(const StepLimits& limits, const SchedulerOptions& options) {
  constexpr int64_t kAllocation = 32;  // bytes that the heap adds to a request, at most
  constexpr int64_t kSequence = sizeof(Sequence) + 5 * kAllocation;
  const int64_t running = StepBuilder::most_running(limits);
  const int64_t histories = running * (kSequence + kAllocation + limits.hidden * static_cast<int64_t>(sizeof(double)) +
                                       limits.positions * static_cast<int64_t>(sizeof(int32_t))) +
                            kAllocation + limits.hidden * static_cast<int64_t>(sizeof(float));
  // A separate client for each, with lists that have grown by doubling.
  const int64_t waiting = options.most_waiting * (kSequence + kAllocation + 16 * static_cast<int64_t>(sizeof(void*)));
  const int64_t scores = limits.positions * (static_cast<int64_t>(sizeof(SequenceToken)) +
                                             LogProbabilities::score_bytes(options.most_best));
  return static_cast<int64_t>(sizeof(Parts)) + Residents::memory_bytes(limits, options) +
         StepBuilder::memory_bytes(limits) + TokenDrawer::memory_bytes(limits.vocab) +
         LogProbabilities::memory_bytes(limits.vocab, options.most_best) + histories + waiting + scores +
         16 * kAllocation;
}

}  // namespace headroom
