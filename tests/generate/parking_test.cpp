// Parked sequences: which are parked, what is copied, what a failing copy ends; and the classes that decide.
#include <gtest/gtest.h>

#include "generate/end_order.h"
#include "generate/expected_peak.h"
#include "generate/output_lengths.h"
#include "generate/park_area.h"
#include "solo_text.h"

namespace headroom {
namespace {

TEST(OutputLengths, TheQuantileOfLongerAnswers) {
  OutputLengths lengths;
  EXPECT_EQ(lengths.expected(0, 320), 320);  // the prior: full length
  for (int i = 0; i < 50; ++i) lengths.add(20, 320);
  EXPECT_EQ(lengths.expected(0, 320), 20);
  EXPECT_EQ(lengths.expected(0, 3200), 200);  // relative to max_tokens
  EXPECT_EQ(lengths.expected(20, 320), 320);  // longer than all others: the prior again
  EXPECT_EQ(lengths.expected(320, 320), 320);
  EXPECT_EQ(lengths.expected(0, 0), 0);
  for (int i = 0; i < 50; ++i) lengths.add(160, 320);
  EXPECT_EQ(lengths.expected(0, 320), 160);
  EXPECT_EQ(lengths.expected(100, 320), 160);
  for (int i = 0; i < 4000; ++i) lengths.add(10, 320);
  EXPECT_EQ(lengths.expected(0, 320), 10);  // it adapts
}

TEST(ExpectedPeak, BlocksGoBackOneSequenceAfterTheOther) {
  // Two sequences of 8 tokens in one block of 8 each, with 8 and 16 tokens left: each needs one more block, then the
  // second another.
  std::vector<ExpectedCourse> apart{{8, 8, 1, true, 1}, {16, 8, 1, true, 1}};
  EXPECT_EQ(expected_growth(apart, 8), 3);  // before the first ends: 2 and a half for each; then 2.5 - 1
  std::vector<ExpectedCourse> longer{{8, 8, 1, true, 1}, {800, 8, 1, true, 1}};
  EXPECT_EQ(expected_growth(longer, 8), 100 - 1);
  std::vector<ExpectedCourse> whole{{8, 8, 1, false, 4}};
  EXPECT_EQ(expected_growth(whole, 8), 0);
}

SequenceBlocks some_blocks(std::vector<int32_t> table, int64_t promised, int64_t unpromised) {
  SequenceBlocks blocks;
  blocks.table = std::move(table), blocks.promised = promised, blocks.unpromised = unpromised;
  return blocks;
}

TEST(EndOrder, TheOlderGiveBackForTheYounger) {
  EndOrder order(16, 4);
  const SequenceBlocks a = some_blocks({0, 1}, 0, 2), b = some_blocks({2}, 0, 4), c = some_blocks({3}, 1, 0);
  const SequenceBlocks* all[] = {&a, &b, &c};
  order.look(all, 2);
  EXPECT_EQ(order.slack(0), 0);          // it may take what is left
  EXPECT_EQ(order.slack(1), 2 + 2 - 4);  // the rest when the first has ended
  EXPECT_EQ(order.slack(2), 2 + 2 + 1);
  EXPECT_TRUE(order.safe());
  EXPECT_EQ(order.spare(0), EndOrder::kAll);
  EXPECT_EQ(order.spare(1), 0);  // younger ones take nothing
  EXPECT_EQ(order.gives_back(2), 2);
  order.look(all, 1);
  EXPECT_FALSE(order.safe());
}

TEST(EndOrder, AnOwnedBlockIsGivenBackByItsYoungestOwner) {
  EndOrder order(16, 4);
  const SequenceBlocks a = some_blocks({0, 1, 2}, 0, 0), b = some_blocks({3}, 0, 5), c = some_blocks({0, 1, 4}, 0, 0);
  const SequenceBlocks* all[] = {&a, &b, &c};
  order.look(all, 3);
  EXPECT_EQ(order.gives_back(0), 1);
  EXPECT_EQ(order.slack(1), 3 + 1 - 5);
  EXPECT_FALSE(order.safe());
}

TEST(ParkArea, AFullBlockHasOneSlot) {
  ParkArea area(2, 8);
  const std::vector<int32_t> table{5, 6, 7};
  EXPECT_FALSE(area.fits(table, 3));
  const ParkArea::Hold first = area.hold(5, true), again = area.hold(5, true);
  EXPECT_TRUE(first.fresh);
  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(first.slot, again.slot);
  EXPECT_TRUE(area.fits({table.data(), 2}, 1));
  area.release(first.slot);
  EXPECT_EQ(area.used(), 1);
  area.forget(5);  // the block is written: a copy of it is out of date
  EXPECT_TRUE(area.hold(5, true).fresh);
  EXPECT_EQ(area.used(), 2);
  area.returned(again.slot, 3);
  EXPECT_EQ(area.hold(3, true).slot, again.slot);
  const std::vector<int32_t> held{again.slot, again.slot, area.hold(5, true).slot}, other{held[2]};
  const std::vector<int32_t>* all[] = {&held, &other};
  area.check(all);
}

constexpr int64_t kParkedVocab = 40;

// A pool that is too small for what was learned: short answers, then long ones.
class ParkedBench {
 public:
  explicit ParkedBench(int64_t slots) : runner(limits(slots)), scheduler(runner, options()) {
    for (int i = 0; i < 40; ++i) add(9, 64, static_cast<uint64_t>(i), 1);
    run();
  }
  static StepLimits limits(int64_t slots) { return {24, 6, 8, 24, 4, 24, 96, kParkedVocab, slots}; }
  static SchedulerOptions options() {
    SchedulerOptions of;
    of.rule = AdmissionRule::balanced;
    return of;
  }

  std::shared_ptr<HeardText> add(int64_t prompt, int64_t max_tokens, uint64_t seed, size_t most = SIZE_MAX) {
    auto heard = std::make_shared<HeardText>();
    heard->most = most;
    SequenceRequest request;
    for (int64_t i = 0; i < prompt; ++i)
      request.prompt.push_back(static_cast<int32_t>(mix64(seed * 99 + static_cast<uint64_t>(i)) % kParkedVocab));
    request.max_tokens = max_tokens, request.sampling.seed = seed;
    requests.push_back(request);
    request.listener = heard;
    std::vector<SequenceRequest> group;
    group.push_back(std::move(request));
    EXPECT_EQ(scheduler.add(std::move(group), ids), Admission::taken);
    return heard;
  }
  bool step() {
    const bool more = scheduler.step();
    scheduler.check();
    return more;
  }
  void run() {
    while (step()) {
    }
    EXPECT_EQ(scheduler.counts().blocks_used + scheduler.counts().park_slots_used, 0);
  }
  // Six answers of full length.
  std::vector<std::shared_ptr<HeardText>> add_long() {
    requests.clear();
    std::vector<std::shared_ptr<HeardText>> heard;
    for (uint64_t i = 0; i < 6; ++i) heard.push_back(add(9, 64, 100 + i));
    return heard;
  }
  void run_until_parked() {
    while (scheduler.counts().parked == 0) ASSERT_TRUE(step());
  }

  HistoryRunner runner;
  Scheduler scheduler;
  std::vector<SequenceRequest> requests;
  std::vector<SequenceId> ids;
};

TEST(Parking, TextsAreThoseOfEachRequestAlone) {
  for (const int64_t slots : {0, 3, 9, 100}) {
    ParkedBench bench(slots);
    const int64_t before = bench.runner.rows_run();
    const auto heard = bench.add_long();
    bench.run();
    int64_t rows = 0;
    for (size_t i = 0; i < heard.size(); ++i) {
      EXPECT_EQ(heard[i]->ids(), solo_ids(bench.requests[i], kParkedVocab)) << slots << " slots, " << i;
      EXPECT_EQ(heard[i]->end, SequenceEnd::length);
      rows += 9 + 64 - 1 - heard[i]->cached;
    }
    EXPECT_EQ(bench.runner.rows_run() - before, rows) << "tokens were computed twice";
    const SchedulerCounts counts = bench.scheduler.counts();
    EXPECT_EQ(counts.parks, counts.resumes);
    EXPECT_EQ(counts.parks > 0, slots > 0) << slots;
    EXPECT_LE(counts.most_parks, ParkedBench::options().most_parks);
  }
}

TEST(Parking, TheOldestIsNeverParkedAndTheYoungestFirst) {
  ParkedBench bench(100);
  const auto heard = bench.add_long();
  bench.run_until_parked();
  const size_t behind = heard[4]->tokens.size();
  EXPECT_TRUE(heard[5]->tokens.size() <= behind && behind <= heard[0]->tokens.size());
  size_t told = heard[0]->tokens.size();
  while (!heard[0]->end) {
    ASSERT_TRUE(bench.step());
    EXPECT_EQ(heard[0]->tokens.size(), ++told) << "the oldest waited";
  }
  bench.run();
}

TEST(Parking, WhatCannotBeWrittenFailsAlone) {
  ParkedBench bench(100);
  const auto heard = bench.add_long();
  int copies = 0;
  bench.runner.area_fails = [&] { return ++copies == 2; };
  bench.run();
  int64_t failed = 0;
  for (size_t i = 0; i < heard.size(); ++i) {
    if (heard[i]->end == SequenceEnd::failed) {
      ++failed;
      EXPECT_NE(heard[i]->error.find("no space left"), std::string::npos);
    } else {
      EXPECT_EQ(heard[i]->ids(), solo_ids(bench.requests[i], kParkedVocab)) << i;
    }
  }
  EXPECT_EQ(failed, 1);
}

TEST(Parking, WhatCannotBeReadFailsAlone) {
  ParkedBench bench(100);
  const auto heard = bench.add_long();
  bench.run_until_parked();
  const int64_t parked = bench.scheduler.counts().parked;
  bench.runner.area_fails = [&] { return bench.scheduler.counts().resumes >= 0; };
  // Parked sequences may find their blocks in the index, and need at least the one that is not full.
  bench.run();
  int64_t failed = 0;
  for (const auto& text : heard) failed += text->end == SequenceEnd::failed ? 1 : 0;
  EXPECT_GE(failed, parked);
  EXPECT_LT(failed, 6);
  EXPECT_EQ(heard[0]->end, SequenceEnd::length);
}

TEST(Parking, AParkedSequenceIsCancelled) {
  ParkedBench bench(100);
  const auto heard = bench.add_long();
  bench.run_until_parked();
  bench.scheduler.cancel(bench.ids[0]);  // the last one added
  bench.scheduler.check();
  EXPECT_EQ(heard[5]->end, SequenceEnd::cancelled);
  bench.scheduler.fail_all("the end");
  bench.scheduler.check();
  for (const auto& text : heard) EXPECT_EQ(text->ends, 1);
  EXPECT_EQ(bench.scheduler.counts().park_slots_used, 0);
}

}  // namespace
}  // namespace headroom
