// The scheduler under random arrivals, cancellations, failures and limits. Every token is compared with that of the
// request alone, and every accepted sequence ends exactly once, within a bound of steps.
//
// With balanced admission the pool is a quarter of what the sequences of a step may need.
//
// HEADROOM_SCHEDULER_STEPS=1000000 test_generate --gtest_filter='SchedulerSimulation.*' runs that many steps for each
// of the 50 seeds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "solo_text.h"

namespace headroom {
namespace {

constexpr int64_t kFewIds = 32;

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(mix64(seed)) {}
  int64_t below(int64_t end) { return static_cast<int64_t>(mix64(seed_ ^ counter_++) % static_cast<uint64_t>(end)); }
  int64_t from(int64_t first, int64_t last) { return first + below(last - first + 1); }
  bool once_in(int64_t count) { return below(count) == 0; }

 private:
  uint64_t seed_, counter_ = 0;
};

// Compares its tokens with the text generated alone, one by one.
class ComparedText : public SequenceListener {
 public:
  ComparedText(const SequenceRequest& request, int64_t ends_after, TokenDrawer& drawer, LogProbabilities& ranks)
      : request_(request), ends_after_(ends_after), drawer_(drawer), ranks_(ranks), tokens_(request.prompt) {}

  void on_prompt(std::vector<SequenceToken> scored) override {
    ASSERT_TRUE(request_.prompt_logprobs && !scored_ && scored.size() == tokens_.size());
    scored_ = true;
    std::vector<float> logits(kFewIds);
    for (size_t i = 0; i < scored.size(); ++i) {
      if (i > 0) text_.logits(logits);
      const SequenceToken wanted = i > 0 ? ranks_.score(logits, tokens_[i], std::max<int64_t>(request_.best, 0))
                                         : SequenceToken{tokens_[0], std::nullopt, {}};
      ASSERT_TRUE(same_token(scored[i], wanted)) << i;
      text_.add(tokens_[i]), ++seen_;
    }
  }
  bool on_token(const SequenceToken& token) override {
    std::vector<float> logits(kFewIds);
    const int32_t id = next(logits);
    const SequenceToken wanted =
        request_.best >= 0 ? ranks_.score(logits, id, request_.best) : SequenceToken{id, std::nullopt, {}};
    EXPECT_TRUE(same_token(token, wanted)) << token.id << " instead of " << id;
    EXPECT_EQ(scored_, request_.prompt_logprobs);
    tokens_.push_back(token.id);
    return ++told_ != ends_after_;
  }
  void on_end(SequenceEnd how, int64_t drawn, int64_t cached, const std::string& error) override {
    EXPECT_FALSE(end_);
    end_ = how;
    EXPECT_TRUE(cached == 0 || (!request_.prompt_logprobs && cached < static_cast<int64_t>(request_.prompt.size())));
    EXPECT_EQ(how == SequenceEnd::failed, !error.empty());
    bool stopped = false;
    if (drawn == told_ + 1) {
      std::vector<float> logits(kFewIds);
      stopped = std::ranges::count(request_.stop_ids, next(logits)) > 0;
    }
    EXPECT_EQ(drawn, told_ + (stopped ? 1 : 0));
    EXPECT_EQ(how == SequenceEnd::stop, stopped || (told_ == ends_after_ && told_ > 0));
    EXPECT_TRUE(how != SequenceEnd::length || (told_ == request_.max_tokens && scored_ == request_.prompt_logprobs));
  }
  const std::optional<SequenceEnd>& end() const { return end_; }
  int64_t told() const { return told_; }

 private:
  int32_t next(std::vector<float>& logits) {
    for (; seen_ < tokens_.size(); ++seen_) text_.add(tokens_[seen_]);
    text_.logits(logits);
    return drawer_.draw(request_.sampling, logits, tokens_, request_.prompt.size(), nullptr);
  }

  SequenceRequest request_;
  int64_t ends_after_;
  TokenDrawer& drawer_;
  LogProbabilities& ranks_;
  std::vector<int32_t> tokens_;
  HistoryHash text_;
  size_t seen_ = 0;
  int64_t told_ = 0;
  bool scored_ = false;
  std::optional<SequenceEnd> end_;
};

struct Setting {
  StepLimits limits;
  SchedulerOptions options;
  int64_t clients, failures, cancellations, arrivals;  // one per this many steps; 0: never
  int64_t area_failures;                               // one per this many copies
};

Setting setting_of(Draws& draws, AdmissionRule rule) {
  Setting of{};
  of.limits.rows = draws.once_in(4) ? draws.from(1, 4) : draws.from(4, 24);
  of.limits.sequences = draws.from(1, 10);
  of.limits.logits = draws.from(1, 16);
  of.limits.block_tokens = draws.once_in(4) ? 1 : draws.from(2, 5);
  of.limits.blocks = draws.from(8, 60);
  of.limits.positions = std::min<int64_t>(draws.from(6, 70), of.limits.blocks * of.limits.block_tokens);
  of.limits.table_blocks = (of.limits.positions + of.limits.block_tokens - 1) / of.limits.block_tokens;
  of.limits.vocab = kFewIds;
  of.options = {draws.from(1, 24), !draws.once_in(5), 5, draws.below(5), rule, draws.below(5)};
  of.clients = draws.from(1, 5);
  of.failures = draws.once_in(2) ? draws.from(20, 400) : 0;
  of.cancellations = draws.from(5, 60);
  of.arrivals = draws.from(2, 12);
  of.area_failures = 0;
  if (rule == AdmissionRule::guaranteed) return of;
  StepLimits& limits = of.limits;
  limits.sequences = draws.from(3, 10);
  limits.logits = std::max<int64_t>(limits.logits, 4);
  limits.rows = std::max<int64_t>(limits.rows, 4);
  limits.blocks = std::max(limits.table_blocks, limits.sequences * limits.table_blocks / 4);
  of.arrivals = draws.from(2, 4);
  limits.park_slots = draws.once_in(4) ? draws.below(3) : draws.from(1, 2 * limits.blocks);
  of.area_failures = draws.once_in(3) ? draws.from(20, 400) : 0;
  return of;
}

class Simulation {
 public:
  Simulation(uint64_t seed, AdmissionRule rule)
      : draws_(seed),
        setting_(setting_of(draws_, rule)),
        runner_(setting_.limits),
        scheduler_(runner_, setting_.options) {
    runner_.fails = [this] { return setting_.failures > 0 && draws_.once_in(setting_.failures); };
    runner_.area_fails = [this] { return setting_.area_failures > 0 && draws_.once_in(setting_.area_failures); };
  }

  void run(int64_t steps) {
    for (now_ = 0; now_ < steps && !testing::Test::HasFailure(); ++now_) {
      while (draws_.once_in(setting_.arrivals) && live_.size() < 60) arrive();
      if (!live_.empty() && draws_.once_in(setting_.cancellations)) cancel();
      if (draws_.once_in(5000)) scheduler_.fail_all("the end of the world");
      scheduler_.step();
      check();
    }
    // No more arrivals: every accepted sequence ends.
    while (scheduler_.step() && !testing::Test::HasFailure()) ++now_, check();
    EXPECT_TRUE(live_.empty()) << live_.size() << " sequences are lost";
    EXPECT_EQ(scheduler_.counts().blocks_used + scheduler_.counts().park_slots_used, 0);
    EXPECT_FALSE(scheduler_.step());
  }

  int64_t taken() const { return taken_; }
  SchedulerCounts counts() const { return scheduler_.counts(); }
  int64_t longest_wait() const { return longest_wait_; }

 private:
  struct Live {
    std::shared_ptr<ComparedText> text;
    uint64_t client;
    int64_t since, bound;
  };

  SequenceRequest request() {
    const StepLimits& limits = setting_.limits;
    SequenceRequest made;
    const int64_t size =
        draws_.from(1, draws_.once_in(20) ? limits.positions + 1 : std::max<int64_t>(limits.positions * 2 / 3, 1));
    // Prompts share beginnings: the first tokens are those of one of three families.
    const int64_t family = draws_.below(3), alike = draws_.from(0, size);
    for (int64_t i = 0; i < size; ++i)
      made.prompt.push_back(static_cast<int32_t>(i < alike ? mix64(static_cast<uint64_t>(family * 1000 + i)) % kFewIds
                                                           : static_cast<uint64_t>(draws_.below(kFewIds))));
    made.max_tokens =
        draws_.once_in(20) ? limits.positions : draws_.from(0, std::max<int64_t>(limits.positions - size, 0));
    if (draws_.once_in(2)) made.sampling.temperature = 0;
    made.sampling.seed = static_cast<uint64_t>(draws_.below(100));
    if (draws_.once_in(4)) made.sampling.top_k = 5, made.sampling.min_p = 0.1, made.sampling.presence_penalty = 0.5;
    if (draws_.once_in(3)) made.stop_ids = {static_cast<int32_t>(draws_.below(kFewIds))};
    if (draws_.once_in(6)) made.best = draws_.from(0, 5);
    made.prompt_logprobs = draws_.once_in(8);
    made.client = static_cast<uint64_t>(draws_.below(setting_.clients));
    return made;
  }

  // Number of tokens after which a listener ends its text; 0: never. With balanced admission answers are short for a
  // while, and then longer than learned.
  int64_t ends_after(const SequenceRequest& request) {
    if (setting_.options.rule == AdmissionRule::balanced && now_ / 200 % 4 != 3)
      return draws_.from(1, 1 + request.max_tokens / 4);
    return draws_.once_in(4) ? draws_.from(1, 9) : 0;
  }

  void arrive() {
    std::vector<SequenceRequest> group;
    std::vector<Live> live;
    bool fits = true;
    const SequenceRequest first = request();
    for (int64_t i = draws_.once_in(4) ? draws_.from(1, 5) : 1; i > 0; --i) {
      SequenceRequest made = draws_.once_in(2) ? first : request();
      made.client = first.client;
      const auto positions = static_cast<int64_t>(made.prompt.size()) + made.max_tokens;
      fits = fits && positions <= setting_.limits.positions;
      auto text = std::make_shared<ComparedText>(made, ends_after(made), drawer_, ranks_);
      live.push_back({text, made.client, now_, 0});
      made.listener = text;
      group.push_back(std::move(made));
    }
    const auto count = static_cast<int64_t>(group.size());
    const SchedulerCounts before = scheduler_.counts();
    std::vector<SequenceId> ids;
    const Admission admission = scheduler_.add(std::move(group), ids);
    fits = fits && count <= setting_.options.most_waiting;
    const bool room = before.waiting + count <= setting_.options.most_waiting;
    ASSERT_EQ(admission, !fits ? Admission::never_fits : room ? Admission::taken : Admission::queue_full);
    ASSERT_EQ(scheduler_.counts().refused, before.refused + (fits && room ? 0 : count));
    for (size_t i = 0; i < ids.size(); ++i) enter(ids[i], live[i]);
    taken_ += static_cast<int64_t>(ids.size());
  }

  // The bound. At most so many others are admitted before it (WaitingLine), and so many run with it; each fills at most
  // all its positions. A step in which any of them runs fills at least one: of the prompt being read, or of each text
  // being generated. While it is stalled, older sequences continue, each to its end once; each time it is parked, at
  // most the current ones.
  void enter(SequenceId id, Live live) {
    int64_t before = 0;
    for (const auto& [other, of] : live_) before += of.client == live.client ? 1 : 0;
    const int64_t others = (before + 1) * (setting_.clients - 1 + setting_.options.most_passes) + before;
    const bool balanced = setting_.options.rule == AdmissionRule::balanced;
    const int64_t stops = balanced ? 1 + setting_.options.most_parks : 0;
    live.bound = ((2 + stops) * setting_.limits.sequences + others + 1) * setting_.limits.positions;
    live_.emplace(id, std::move(live));
  }

  void cancel() {
    const auto chosen = std::next(live_.begin(), draws_.below(static_cast<int64_t>(live_.size())));
    scheduler_.cancel(chosen->first);
    ASSERT_EQ(chosen->second.text->end(), SequenceEnd::cancelled);
  }

  void check() {
    scheduler_.check();
    for (auto at = live_.begin(); at != live_.end();) {
      const Live& of = at->second;
      longest_wait_ = std::max(longest_wait_, now_ - of.since);
      ASSERT_LE(now_ - of.since, of.bound) << "sequence " << at->first << " starves";
      if (of.text->end()) ++ended_;
      at = of.text->end() ? live_.erase(at) : std::next(at);
    }
    const SchedulerCounts counts = scheduler_.counts();
    ASSERT_EQ(counts.ended, ended_);
    ASSERT_EQ(counts.running + counts.parked + counts.waiting, static_cast<int64_t>(live_.size()));
    ASSERT_EQ(taken_, ended_ + static_cast<int64_t>(live_.size()));
    ASSERT_LE(counts.running + counts.parked, setting_.limits.sequences);
    ASSERT_LE(counts.most_parks, setting_.options.most_parks);
    ASSERT_LE(counts.resumes, counts.parks);
    ASSERT_LE(counts.park_slots_used, setting_.limits.park_slots);
    ASSERT_LE(counts.waiting, setting_.options.most_waiting);
    ASSERT_LE(counts.blocks_used + counts.blocks_kept, counts.blocks);
    ASSERT_LE(counts.prefix_hits, counts.prefix_queries);
    ASSERT_TRUE(counts.drawn_tokens >= last_.drawn_tokens && counts.steps >= last_.steps);
    last_ = counts;
  }

  Draws draws_;
  Setting setting_;
  TokenDrawer drawer_{kFewIds};
  LogProbabilities ranks_{kFewIds, 5};
  HistoryRunner runner_;
  Scheduler scheduler_;
  std::map<SequenceId, Live> live_;
  SchedulerCounts last_;
  int64_t now_ = 0, taken_ = 0, ended_ = 0, longest_wait_ = 0;
};

struct SimulationTotals {
  SchedulerCounts counts;
  int64_t taken = 0;
};

// 50 seeds.
SimulationTotals run_simulations(AdmissionRule rule, int64_t steps) {
  SimulationTotals all;
  for (uint64_t seed = 0; seed < 50 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed, rule);
    simulation.run(steps);
    const SchedulerCounts counts = simulation.counts();
    SchedulerCounts& sum = all.counts;
    sum.steps += counts.steps, sum.drawn_tokens += counts.drawn_tokens, sum.prefix_hits += counts.prefix_hits;
    sum.cancelled += counts.cancelled, sum.refused += counts.refused;
    sum.parks += counts.parks, sum.resumes += counts.resumes;
    sum.blocks_saved += counts.blocks_saved, sum.blocks_loaded += counts.blocks_loaded;
    sum.most_parks = std::max(sum.most_parks, counts.most_parks);
    all.taken += simulation.taken();
  }
  return all;
}

class SchedulerSimulation : public testing::Test {
 protected:
  static int64_t steps() {
    const char* const asked = std::getenv("HEADROOM_SCHEDULER_STEPS");
    return asked ? std::atoll(asked) : 2000;
  }
  // Every kind of event has happened.
  static void expect_all(const SimulationTotals& all) {
    EXPECT_GT(all.counts.steps, 50 * steps() / 4);
    EXPECT_GT(all.taken, all.counts.steps / 20);
    EXPECT_GT(all.counts.drawn_tokens, all.counts.steps / 4);
    EXPECT_TRUE(all.counts.prefix_hits > 0 && all.counts.cancelled > 0 && all.counts.refused > 0);
    RecordProperty("steps", std::to_string(all.counts.steps));
    RecordProperty("sequences", std::to_string(all.taken));
    RecordProperty("tokens", std::to_string(all.counts.drawn_tokens));
  }
};

TEST_F(SchedulerSimulation, NothingIsLostAndNothingStarves) {
  const SimulationTotals all = run_simulations(AdmissionRule::guaranteed, steps());
  expect_all(all);
  EXPECT_EQ(all.counts.parks, 0);
}

TEST_F(SchedulerSimulation, NothingIsLostAndNothingStarvesWhereSequencesAreParked) {
  const SimulationTotals all = run_simulations(AdmissionRule::balanced, steps());
  expect_all(all);
  EXPECT_GT(all.counts.parks, all.taken / 1000);
  EXPECT_GT(all.counts.resumes, all.counts.parks / 4);
  EXPECT_TRUE(all.counts.blocks_saved > 0 && all.counts.blocks_loaded > 0);
  RecordProperty("parks", std::to_string(all.counts.parks));
  RecordProperty("resumes", std::to_string(all.counts.resumes));
  RecordProperty("most_parks", std::to_string(all.counts.most_parks));
  std::printf("%lld steps, %lld sequences, %lld parks, at most %lld of one, %lld blocks saved, %lld loaded\n",
              static_cast<long long>(all.counts.steps), static_cast<long long>(all.taken),
              static_cast<long long>(all.counts.parks), static_cast<long long>(all.counts.most_parks),
              static_cast<long long>(all.counts.blocks_saved), static_cast<long long>(all.counts.blocks_loaded));
}

}  // namespace
}  // namespace headroom
