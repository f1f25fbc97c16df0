#include "generate/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "byte_grammar.h"
#include "solo_text.h"

namespace headroom {
namespace {

constexpr int64_t kVocab = 300;

StepLimits some_limits() { return {24, 6, 12, 40, 4, 16, 64, kVocab}; }

std::vector<int32_t> a_prompt(size_t size, uint64_t seed = 1) {
  std::vector<int32_t> ids(size);
  for (size_t i = 0; i < size; ++i) ids[i] = static_cast<int32_t>(mix64(seed * 1000 + i) % kVocab);
  return ids;
}

// A scheduler over hashes, with helpers for requests.
class Bench {
 public:
  explicit Bench(const StepLimits& limits = some_limits(), const SchedulerOptions& options = {})
      : runner(limits), scheduler(runner, options) {}

  std::shared_ptr<HeardText> add(SequenceRequest request) {
    auto heard = std::make_shared<HeardText>();
    request.listener = heard;
    std::vector<SequenceRequest> group;
    group.push_back(std::move(request));
    admission = scheduler.add(std::move(group), ids);
    return heard;
  }
  std::shared_ptr<HeardText> add(std::vector<int32_t> prompt, int64_t max_tokens) {
    SequenceRequest request;
    request.prompt = std::move(prompt), request.max_tokens = max_tokens;
    return add(std::move(request));
  }
  bool step() {
    const bool more = scheduler.step();
    scheduler.check();
    return more;
  }
  int64_t run() {
    int64_t steps = 0;
    while (step()) ++steps;
    return steps;
  }

  HistoryRunner runner;
  Scheduler scheduler;
  std::vector<SequenceId> ids;
  Admission admission{};
};

SequenceRequest a_request(std::vector<int32_t> prompt, int64_t max_tokens, const SamplingOptions& sampling = {}) {
  SequenceRequest request;
  request.prompt = std::move(prompt), request.max_tokens = max_tokens, request.sampling = sampling;
  return request;
}

TEST(Scheduler, TextsAreThoseOfEachRequestAlone) {
  Bench bench;
  std::vector<SequenceRequest> requests;
  SamplingOptions penalized{0.8, 0.95, 30, 4};
  penalized.presence_penalty = 1, penalized.frequency_penalty = 0.5, penalized.repetition_penalty = 1.3;
  penalized.logit_bias = {{7, 3.0f}, {9, -100.0f}};
  for (size_t i = 0; i < 12; ++i)
    requests.push_back(a_request(a_prompt(1 + 4 * i, i), 10,
                                 i % 3 == 0   ? SamplingOptions{0}
                                 : i % 3 == 1 ? SamplingOptions{1, 1, 0, i}
                                              : penalized));
  std::vector<std::shared_ptr<HeardText>> heard;
  for (const SequenceRequest& request : requests) heard.push_back(bench.add(request));
  bench.run();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(heard[i]->ids(), solo_ids(requests[i], kVocab)) << i;
    EXPECT_EQ(heard[i]->end, SequenceEnd::length);
    EXPECT_EQ(heard[i]->drawn, 10);
    EXPECT_EQ(heard[i]->ends, 1);
  }
  const SchedulerCounts counts = bench.scheduler.counts();
  EXPECT_EQ(counts.drawn_tokens, 120);
  EXPECT_EQ(counts.prompt_tokens, 12 * 1 + 4 * 66);
  EXPECT_EQ(counts.ended, 12);
  EXPECT_EQ(counts.blocks_used + counts.running + counts.waiting, 0);
  EXPECT_FALSE(bench.step());
}

TEST(Scheduler, ABeginningIsFoundAgain) {
  Bench bench;
  const auto first = bench.add(a_prompt(18), 6);
  bench.run();
  EXPECT_EQ(first->cached, 0);
  const auto again = bench.add(a_prompt(18), 6);
  bench.run();
  EXPECT_EQ(again->cached, 16);
  EXPECT_EQ(again->ids(), first->ids());
  // The generated text is found too; of the 24 tokens the last was never computed.
  std::vector<int32_t> longer = a_prompt(18);
  for (const int32_t id : first->ids()) longer.push_back(id);
  longer.push_back(3);
  const auto goes_on = bench.add(longer, 2);
  bench.run();
  EXPECT_EQ(goes_on->cached, 20);
  EXPECT_EQ(goes_on->ids(), solo_ids(a_request(longer, 2), kVocab));
  EXPECT_EQ(bench.scheduler.counts().prefix_hits, 36);
  EXPECT_EQ(bench.scheduler.counts().prefix_queries, 18 + 18 + 25);
}

TEST(Scheduler, AKnownPromptStillComputesItsLastToken) {
  Bench bench;
  bench.add(a_prompt(16), 1);
  bench.run();
  const auto again = bench.add(a_prompt(16), 4);
  bench.run();
  EXPECT_EQ(again->cached, 12);
  EXPECT_EQ(again->ids(), solo_ids(a_request(a_prompt(16), 4), kVocab));
  EXPECT_EQ(bench.scheduler.counts().blocks_kept, 4);
}

TEST(Scheduler, WithoutAnIndexNothingIsKept) {
  Bench bench(some_limits(), {.prefix_index = false});
  for (int i = 0; i < 2; ++i) {
    const auto text = bench.add(a_prompt(18), 6);
    bench.run();
    EXPECT_EQ(text->cached, 0);
    EXPECT_EQ(text->ids(), solo_ids(a_request(a_prompt(18), 6), kVocab));
  }
  EXPECT_EQ(bench.scheduler.counts().blocks_kept, 0);
  EXPECT_EQ(bench.scheduler.counts().prefix_queries, 0);
}

// Choices of one prompt: one computes, the others take over its blocks.
TEST(Scheduler, ChoicesShareThePromptThatIsBeingRead) {
  StepLimits limits = some_limits();
  limits.blocks = 64;
  Bench bench(limits);
  int64_t rows = 0;
  bench.runner.on_step = [&](const Step& step) { rows += static_cast<int64_t>(step.rows.size()); };
  std::vector<std::shared_ptr<HeardText>> choices;
  for (uint64_t seed = 0; seed < 4; ++seed) choices.push_back(bench.add(a_request(a_prompt(50), 1, {1, 1, 0, seed})));
  bench.run();
  EXPECT_LT(rows, 2 * 50 + 4 * 4);
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_EQ(choices[seed]->ids(), solo_ids(a_request(a_prompt(50), 1, {1, 1, 0, seed}), kVocab));
}

TEST(Scheduler, KeptBlocksMakeRoom) {
  StepLimits limits = some_limits();
  limits.blocks = 16;
  Bench bench(limits);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto text = bench.add(a_prompt(40, seed), 10);
    bench.run();
    EXPECT_EQ(text->ids(), solo_ids(a_request(a_prompt(40, seed), 10), kVocab));
  }
  // What was used last is still there, unless it was evicted.
  const auto again = bench.add(a_prompt(40, 19), 10);
  bench.run();
  EXPECT_EQ(again->cached, 36);
}

TEST(Scheduler, WhatNeverFitsIsRefused) {
  StepLimits limits = some_limits();
  limits.blocks = 8;
  Bench bench(limits);
  bench.add(a_prompt(30), 3);  // 32 positions are filled
  EXPECT_EQ(bench.admission, Admission::taken);
  bench.add(a_prompt(30), 4);
  EXPECT_EQ(bench.admission, Admission::never_fits);
  bench.add(a_prompt(30), INT64_MAX);
  EXPECT_EQ(bench.admission, Admission::never_fits);
  bench.add(a_prompt(65), 0);
  EXPECT_EQ(bench.admission, Admission::never_fits);
  EXPECT_TRUE(bench.ids.empty());
  EXPECT_EQ(bench.scheduler.counts().refused, 3);
  bench.run();
  EXPECT_EQ(bench.scheduler.counts().ended, 1);
}

TEST(Scheduler, GroupsAreTakenAllOrNone) {
  Bench bench(some_limits(), {.most_waiting = 4});
  const auto group = [&](size_t count) {
    std::vector<SequenceRequest> requests;
    for (size_t i = 0; i < count; ++i) {
      requests.push_back(a_request(a_prompt(5), 2));
      requests.back().listener = std::make_shared<HeardText>();
    }
    return bench.scheduler.add(std::move(requests), bench.ids);
  };
  EXPECT_EQ(group(5), Admission::never_fits);
  EXPECT_EQ(group(3), Admission::taken);
  EXPECT_EQ(bench.ids.size(), 3u);
  EXPECT_EQ(group(2), Admission::queue_full);
  EXPECT_EQ(bench.scheduler.counts().waiting, 3);
  bench.run();
  EXPECT_EQ(group(2), Admission::taken);
  EXPECT_EQ(bench.scheduler.counts().refused, 7);
}

TEST(Scheduler, StopsAtStopIdsAndAtTheListenersWord) {
  const std::vector<int32_t> ids = solo_ids(a_request(a_prompt(9), 12), kVocab);
  Bench bench;
  SequenceRequest stops = a_request(a_prompt(9), 12);
  stops.stop_ids = {ids[4]};
  const auto at_id = bench.add(stops);
  const auto told = bench.add(a_prompt(9), 12);
  told->most = 3;
  bench.run();
  EXPECT_EQ(at_id->ids(), std::vector<int32_t>(ids.begin(), ids.begin() + 4));
  EXPECT_EQ(at_id->drawn, 5);
  EXPECT_EQ(at_id->end, SequenceEnd::stop);
  EXPECT_EQ(told->ids().size(), 3u);
  EXPECT_EQ(told->drawn, 3);
  EXPECT_EQ(told->end, SequenceEnd::stop);
}

TEST(Scheduler, CancelsWhatRunsAndWhatWaits) {
  StepLimits limits = some_limits();
  limits.sequences = 1;
  Bench bench(limits);
  const auto runs = bench.add(a_prompt(9), 20);
  const SequenceId first = bench.ids[0];
  const auto waits = bench.add(a_prompt(9), 20);
  bench.step();
  bench.step();
  bench.scheduler.cancel(bench.ids[0]);
  bench.scheduler.cancel(first);
  bench.scheduler.cancel(first);
  EXPECT_EQ(runs->end, SequenceEnd::cancelled);
  EXPECT_EQ(waits->end, SequenceEnd::cancelled);
  EXPECT_EQ(runs->drawn, 2);
  EXPECT_EQ(waits->drawn, 0);
  EXPECT_FALSE(bench.step());
  EXPECT_EQ(bench.scheduler.counts().cancelled, 2);
  EXPECT_EQ(bench.scheduler.counts().blocks_used, 0);
}

TEST(Scheduler, AFailedStepEndsItsSequencesOnly) {
  StepLimits limits = some_limits();
  limits.sequences = 2;
  Bench bench(limits);
  int fail_at = 3;
  bench.runner.fails = [&] { return --fail_at == 0; };
  const auto one = bench.add(a_prompt(9), 20), other = bench.add(a_prompt(9, 2), 20),
             waits = bench.add(a_prompt(9), 20);
  bench.run();
  for (const auto& text : {one, other}) {
    EXPECT_EQ(text->end, SequenceEnd::failed);
    EXPECT_EQ(text->error, "the device is lost");
    EXPECT_EQ(text->drawn, 2);
  }
  EXPECT_EQ(waits->end, SequenceEnd::length);
  EXPECT_EQ(waits->ids(), solo_ids(a_request(a_prompt(9), 20), kVocab));
  const auto later = bench.add(a_prompt(9), 5);
  bench.scheduler.fail_all("the server ends");
  EXPECT_EQ(later->end, SequenceEnd::failed);
  EXPECT_EQ(later->error, "the server ends");
}

// A long prompt while texts are generated: each text gets a token every step, and the prompt all other rows.
TEST(Scheduler, ALongPromptStallsNobody) {
  StepLimits limits = some_limits();
  limits.rows = 8;
  Bench bench(limits);
  const auto a = bench.add(a_prompt(2), 40), b = bench.add(a_prompt(2, 5), 40);
  bench.step();
  const auto longer = bench.add(a_prompt(50, 2), 3);
  int64_t steps = 0;
  for (; longer->tokens.empty(); ++steps) {
    const size_t before = a->tokens.size();
    bench.step();
    EXPECT_EQ(a->tokens.size(), before + 1);
    EXPECT_EQ(b->tokens.size(), before + 1);
  }
  EXPECT_EQ(steps, 9);  // 50 tokens, 6 per step
}

// A short prompt that arrives after a long one gets half of the rows.
TEST(Scheduler, AShortPromptPassesALongOne) {
  StepLimits limits = some_limits();
  limits.rows = 8;
  Bench bench(limits);
  const auto longer = bench.add(a_prompt(50, 2), 3);
  bench.step();
  const auto shorter = bench.add(a_prompt(8), 3);
  bench.step();
  bench.step();
  EXPECT_EQ(shorter->tokens.size(), 1u);
  EXPECT_TRUE(longer->tokens.empty());
  bench.run();
  EXPECT_EQ(longer->ids(), solo_ids(a_request(a_prompt(50, 2), 3), kVocab));
}

TEST(Scheduler, LogProbabilitiesAreTheRawLogits) {
  Bench bench;
  SequenceRequest request = a_request(a_prompt(30), 8, {0.5, 0.9, 20, 3});
  request.sampling.logit_bias = {{5, 50.0f}};
  request.best = 3, request.prompt_logprobs = true;
  bench.add(a_prompt(30), 8);  // its blocks could be used if log-probabilities were not asked for
  bench.run();
  const auto text = bench.add(request);
  bench.add(request);  // one at a time
  bench.run();
  EXPECT_EQ(text->cached, 0);
  EXPECT_EQ(text->ids(), solo_ids(request, kVocab));
  LogProbabilities log_probabilities(kVocab, 3);
  ASSERT_EQ(text->prompt.size(), 30u);
  EXPECT_EQ(text->prompt[0].id, request.prompt[0]);
  EXPECT_FALSE(text->prompt[0].logprob);
  std::vector<int32_t> tokens = request.prompt;
  for (size_t i = 1; i < 38; ++i) {
    const SequenceToken& token = i < 30 ? text->prompt[i] : text->tokens[i - 30];
    if (i >= 30) tokens.push_back(token.id);
    const std::vector<float> logits = history_logits(std::span(tokens).first(i), kVocab);
    EXPECT_TRUE(same_token(token, log_probabilities.score(logits, tokens[i], 3))) << i;
  }
}

TEST(Scheduler, APromptMayBeScoredOnly) {
  Bench bench;
  SequenceRequest request = a_request(a_prompt(30), 0);
  request.prompt_logprobs = true;
  const auto text = bench.add(request);
  request.prompt = {4};
  const auto single = bench.add(request);
  const auto nothing = bench.add(a_prompt(5), 0);
  const int64_t steps = bench.run();
  EXPECT_LE(steps, 4);
  EXPECT_EQ(text->prompt.size(), 30u);
  EXPECT_TRUE(text->prompt[29].logprob && text->prompt[29].best.empty());
  EXPECT_EQ(single->prompt.size(), 1u);
  for (const auto& heard : {text, single, nothing}) {
    EXPECT_EQ(heard->end, SequenceEnd::length);
    EXPECT_EQ(heard->drawn, 0);
  }
}

TEST(Scheduler, GrammarsEndTheirTexts) {
  StepLimits limits = some_limits();
  limits.vocab = 258;
  Bench bench(limits);
  ByteGrammar ends("(ab|c){3}!");
  SequenceRequest request = a_request({1, 2, 3}, 30);
  request.stop_ids = {257};
  request.grammar = std::shared_ptr<GrammarMatcher>(&ends.matcher(), [](GrammarMatcher*) {});
  const auto text = bench.add(request);
  const auto free = bench.add(SequenceRequest(a_request({1, 2, 3}, 30)));
  bench.run();
  EXPECT_EQ(text->end, SequenceEnd::stop);
  EXPECT_EQ(text->ids().back(), '!');
  EXPECT_EQ(free->ids(), solo_ids(a_request({1, 2, 3}, 30), 258));
  // Already at its end: nothing is sampled.
  const auto after = bench.add(request);
  bench.run();
  EXPECT_EQ(after->end, SequenceEnd::stop);
  EXPECT_EQ(after->drawn, 0);
}

TEST(Scheduler, AGrammarThatCannotBeFollowedFailsAlone) {
  StepLimits limits = some_limits();
  limits.vocab = 98;
  Bench bench(limits);
  ByteGrammar cannot("ab", 98);
  SequenceRequest request = a_request({1, 2, 3}, 30);
  request.grammar = std::shared_ptr<GrammarMatcher>(&cannot.matcher(), [](GrammarMatcher*) {});
  const auto text = bench.add(request), free = bench.add({1, 2, 3}, 30);
  bench.run();
  EXPECT_EQ(text->ids(), std::vector<int32_t>{'a'});
  EXPECT_EQ(text->end, SequenceEnd::no_token);
  EXPECT_THAT(text->error, testing::HasSubstr("cannot be followed"));
  EXPECT_EQ(free->ids(), solo_ids(a_request({1, 2, 3}, 30), 98));
}

// A grammar is not blamed for a device that fails.
TEST(Scheduler, AFailedStepIsNoFaultOfAGrammar) {
  StepLimits limits = some_limits();
  limits.vocab = 98;
  Bench bench(limits);
  ByteGrammar grammar("ab", 98);
  SequenceRequest request = a_request({1, 2, 3}, 30);
  request.grammar = std::shared_ptr<GrammarMatcher>(&grammar.matcher(), [](GrammarMatcher*) {});
  const auto text = bench.add(request);
  bench.runner.fails = [] { return true; };
  bench.run();
  EXPECT_EQ(text->end, SequenceEnd::failed);
}

TEST(Scheduler, MemoryGrowsWithTheLimitsAndOptions) {
  const int64_t bytes = Scheduler::memory_bytes(some_limits(), {});
  StepLimits larger = some_limits();
  larger.blocks += 100;
  EXPECT_GE(Scheduler::memory_bytes(larger, {}), bytes + 100 * 4 * (2 + 4));
  larger = some_limits(), larger.positions += 1000;
  EXPECT_GE(Scheduler::memory_bytes(larger, {}), bytes + 6 * 4000);
  EXPECT_GT(Scheduler::memory_bytes(some_limits(), {.most_waiting = 1000}), bytes + 744 * 200);
  EXPECT_LT(Scheduler::memory_bytes(some_limits(), {.prefix_index = false}), bytes);
}

// For the same text, only sequences with the same adapter, loaded once, share blocks.
TEST(Scheduler, AdaptersShareNoBlocks) {
  StepLimits limits = some_limits();
  limits.adapters = 2;
  Bench bench(limits);
  const auto text = [&](int32_t slot, int32_t prefix) {
    SequenceRequest request = a_request(a_prompt(21), 6, SamplingOptions{0});
    request.adapter = {slot, prefix, nullptr};
    return request;
  };
  const auto cached = [&](const SequenceRequest& request) {
    const auto heard = bench.add(request);
    bench.run();
    EXPECT_EQ(heard->ids(), solo_ids(request, kVocab));
    return heard->cached;
  };
  EXPECT_EQ(cached(text(-1, -1)), 0);
  EXPECT_EQ(cached(text(0, -2)), 0);
  EXPECT_EQ(cached(text(1, -3)), 0);
  EXPECT_EQ(cached(text(0, -4)), 0);  // the slot was filled again
  for (const auto& [slot, prefix] : {std::pair{-1, -1}, std::pair{1, -3}, std::pair{0, -4}})
    EXPECT_EQ(cached(text(slot, prefix)), 20) << slot;
  // And among each other, at the same time.
  bench.add(text(-1, -1)), bench.add(text(0, -5)), bench.add(text(1, -6));
  bench.run();
}

TEST(Scheduler, AnAdapterIsHeldUntilItsSequenceHasEnded) {
  StepLimits limits = some_limits();
  limits.adapters = 1;
  Bench bench(limits);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  SequenceRequest request = a_request(a_prompt(9), 4, SamplingOptions{0});
  request.adapter = {0, -2, std::move(held)};
  bench.add(std::move(request));
  bench.runner.on_step = [&](const Step& step) {
    EXPECT_FALSE(watched.expired());
    for (const StepRow& row : step.rows) EXPECT_EQ(row.adapter, 0);
  };
  bench.run();
  EXPECT_TRUE(watched.expired());
}

StepLimits pooling_limits() {
  StepLimits limits = some_limits();
  limits.hidden = 3;
  return limits;
}

SequenceRequest a_pooling(std::vector<int32_t> prompt, Pooling pooling) {
  SequenceRequest request = a_request(std::move(prompt), 0);
  request.pooling = pooling;
  return request;
}

// HistoryRunner's result for the prompt alone.
std::vector<float> solo_embedding(const std::vector<int32_t>& prompt, Pooling pooling) {
  std::vector<double> sum(3, 0);
  const size_t most = pooling == Pooling::first ? 1 : prompt.size();
  for (size_t size = pooling == Pooling::last ? most : 1; size <= most; ++size) {
    const std::vector<float> state = history_logits(std::span(prompt).first(size), kVocab);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(state[i]);
  }
  std::vector<float> out;
  for (const double total : sum)
    out.push_back(static_cast<float>(pooling == Pooling::mean ? total / static_cast<double>(prompt.size()) : total));
  return out;
}

TEST(Pooling, IsThePromptsOwnWhateverRunsBesideIt) {
  Bench bench(pooling_limits());
  std::vector<std::pair<SequenceRequest, std::shared_ptr<HeardText>>> asked;
  const auto text = bench.add(a_prompt(9, 50), 12);
  for (size_t size : {1, 2, 13, 30, 64})
    for (const Pooling pooling : {Pooling::last, Pooling::mean}) {
      SequenceRequest request = a_pooling(a_prompt(size, size), pooling);
      asked.emplace_back(request, bench.add(request));
      ASSERT_EQ(bench.admission, Admission::taken);
    }
  bench.run();
  for (const auto& [request, heard] : asked) {
    EXPECT_EQ(heard->embedding, solo_embedding(request.prompt, request.pooling)) << request.prompt.size();
    EXPECT_EQ(heard->end, SequenceEnd::length);
    EXPECT_EQ(heard->drawn, 0);
    EXPECT_EQ(heard->ends, 1);
  }
  EXPECT_EQ(text->ids(), solo_ids(a_request(a_prompt(9, 50), 12), kVocab));
}

TEST(Pooling, TheLastTokenTakesAKeptPrefixAndTheMeanDoesNot) {
  Bench bench(pooling_limits());
  const std::vector<int32_t> prompt = a_prompt(20);
  bench.add(prompt, 1);
  bench.run();
  const auto last = bench.add(a_pooling(prompt, Pooling::last));
  const auto mean = bench.add(a_pooling(prompt, Pooling::mean));
  bench.run();
  EXPECT_EQ(last->cached, 16);
  EXPECT_EQ(mean->cached, 0);
  EXPECT_EQ(last->embedding, solo_embedding(prompt, Pooling::last));
  EXPECT_EQ(mean->embedding, solo_embedding(prompt, Pooling::mean));
}

// For an encoder: no sequence is split, and none continues from another's blocks.
TEST(Pooling, StepsHaveWholeSequencesWhereThatIsAsked) {
  StepLimits limits = pooling_limits();
  limits.rows = limits.logits = 70;
  limits.whole_sequences = true;
  Bench bench(limits);
  std::vector<std::pair<SequenceRequest, std::shared_ptr<HeardText>>> asked;
  std::map<int32_t, size_t> lengths;  // by first token
  for (const size_t size : {64, 1, 33, 40, 20, 2, 64, 20, 7})
    for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::first}) {
      SequenceRequest request = a_pooling(a_prompt(size, size), pooling);
      lengths[request.prompt[0]] = size;
      asked.emplace_back(request, bench.add(request));
      ASSERT_EQ(bench.admission, Admission::taken);
    }
  ASSERT_EQ(lengths.size(), 7u);
  bench.runner.on_step = [&](const Step& step) {
    for (size_t row = 0; row < step.rows.size();) {
      ASSERT_EQ(step.rows[row].position, 0);
      const size_t size = lengths.at(step.rows[row].token);
      ASSERT_LE(row + size, step.rows.size());
      EXPECT_EQ(step.rows[row + size - 1].table, step.rows[row].table);
      EXPECT_EQ(step.rows[row + size - 1].position, static_cast<int32_t>(size) - 1);
      row += size;
    }
  };
  const int64_t steps = bench.run();
  EXPECT_LT(steps, static_cast<int64_t>(asked.size()));
  for (const auto& [request, heard] : asked) {
    EXPECT_EQ(heard->embedding, solo_embedding(request.prompt, request.pooling)) << request.prompt.size();
    EXPECT_EQ(heard->end, SequenceEnd::length);
    EXPECT_EQ(heard->cached, 0);
  }
}

TEST(Pooling, APromptLongerThanASequenceNeverFits) {
  Bench bench(pooling_limits());
  bench.add(a_pooling(a_prompt(65), Pooling::last));
  EXPECT_EQ(bench.admission, Admission::never_fits);
}

TEST(Pooling, AFailureOfTheListenerEndsTheSequenceAlone) {
  struct Failing : HeardText {
    void on_embedding(std::span<const float>) override { throw Error(ErrorKind::run, "not finite"); }
  };
  Bench bench(pooling_limits());
  SequenceRequest request = a_pooling(a_prompt(5), Pooling::last);
  const auto failing = std::make_shared<Failing>();
  request.listener = failing;
  std::vector<SequenceRequest> group{request};
  bench.scheduler.add(std::move(group), bench.ids);
  const auto other = bench.add(a_pooling(a_prompt(6), Pooling::last));
  bench.run();
  EXPECT_EQ(failing->end, SequenceEnd::failed);
  EXPECT_EQ(other->end, SequenceEnd::length);
}

}  // namespace
}  // namespace headroom
