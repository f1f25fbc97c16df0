// The benefit of balanced admission, in steps: a pool of a quarter of what the sequences may need, answers shorter than
// max_tokens, and a queue that is never empty.
#include <gtest/gtest.h>

#include <cstdio>

#include "solo_text.h"

namespace headroom {
namespace {

constexpr int64_t kIds = 16;
constexpr int64_t kSequences = 32;
constexpr int64_t kPrompt = 24;
constexpr int64_t kMaxTokens = 104;

// Counts the steps between its tokens.
class TimedText : public SequenceListener {
 public:
  TimedText(const int64_t& now, int64_t length, std::vector<int64_t>& gaps) : now_(now), length_(length), gaps_(gaps) {}
  bool on_token(const SequenceToken&) override {
    if (tokens_ > 0) gaps_.push_back(now_ - last_);
    last_ = now_;
    return ++tokens_ < length_;
  }
  void on_end(SequenceEnd how, int64_t drawn, int64_t cached, const std::string&) override {
    EXPECT_EQ(how, SequenceEnd::stop);
    EXPECT_EQ(drawn, length_);
    cached_ = cached;
    ended_ = true;
  }
  bool ended() const { return ended_; }
  // Rows that the model must compute for it: each token once, except the last one sampled.
  int64_t rows() const { return kPrompt + length_ - 1 - cached_; }

 private:
  const int64_t& now_;
  int64_t length_, tokens_ = 0, last_ = 0, cached_ = 0;
  bool ended_ = false;
  std::vector<int64_t>& gaps_;
};

struct Outcome {
  double tokens_per_step = 0, running = 0;
  int64_t median = 0, p99 = 0, longest = 0;
  SchedulerCounts counts;
};

struct Load {
  int64_t shortest, longest;  // lengths of answers, uniform between these
  int64_t park_slots;
  int64_t full_one_in = 0;  // one in this many has full length; 0: none
};

StepLimits limits_of(const Load& load) {
  const int64_t each = (kPrompt + kMaxTokens + 7) / 8;
  return {kSequences + 64,      kSequences, kSequences,     kSequences * each / 4, 8, each,
          kPrompt + kMaxTokens, kIds,       load.park_slots};
}

int64_t length_of(const Load& load, uint64_t number) {
  const uint64_t drawn = mix64(number);
  if (load.full_one_in > 0 && drawn / 1024 % static_cast<uint64_t>(load.full_one_in) == 0) return kMaxTokens;
  return load.shortest + static_cast<int64_t>(drawn % static_cast<uint64_t>(load.longest - load.shortest + 1));
}

Outcome serve(const Load& load, AdmissionRule rule) {
  constexpr int64_t kRequests = 1500;
  HistoryRunner runner(limits_of(load));
  SchedulerOptions options;
  options.rule = rule;
  Scheduler scheduler(runner, options);
  std::vector<std::shared_ptr<TimedText>> texts;
  std::vector<int64_t> gaps;
  int64_t now = 0, tokens = 0;
  Outcome out;
  for (bool more = true; more; ++now) {
    while (static_cast<int64_t>(texts.size()) < kRequests && scheduler.counts().waiting < 2 * kSequences) {
      const auto number = static_cast<uint64_t>(texts.size());
      const int64_t length = length_of(load, number);
      SequenceRequest request;
      for (int64_t i = 0; i < kPrompt; ++i)
        request.prompt.push_back(static_cast<int32_t>(mix64(number * 100 + static_cast<uint64_t>(i)) % kIds));
      request.max_tokens = kMaxTokens;
      texts.push_back(std::make_shared<TimedText>(now, length, gaps));
      request.listener = texts.back();
      std::vector<SequenceRequest> group;
      group.push_back(std::move(request));
      std::vector<SequenceId> ids;
      EXPECT_EQ(scheduler.add(std::move(group), ids), Admission::taken);
      tokens += length;
    }
    more = scheduler.step();
    out.running += static_cast<double>(scheduler.counts().running);
  }
  int64_t rows = 0;
  for (const auto& text : texts) {
    EXPECT_TRUE(text->ended());
    rows += text->rows();
  }
  EXPECT_EQ(runner.rows_run(), rows) << "tokens were computed twice";
  std::ranges::sort(gaps);
  out.tokens_per_step = static_cast<double>(tokens) / static_cast<double>(now);
  out.running /= static_cast<double>(now);
  out.median = gaps[gaps.size() / 2];
  out.p99 = gaps[gaps.size() * 99 / 100];
  out.longest = gaps.back();
  out.counts = scheduler.counts();
  return out;
}

void print(const char* name, const Outcome& of) {
  std::printf(
      "%-11s %5.2f tokens a step, %4.1f sequences run, steps between tokens: median %lld, p99 %lld, most %lld; %lld "
      "parks, "
      "at most %lld of one\n",
      name, of.tokens_per_step, of.running, static_cast<long long>(of.median), static_cast<long long>(of.p99),
      static_cast<long long>(of.longest), static_cast<long long>(of.counts.parks),
      static_cast<long long>(of.counts.most_parks));
}

Outcome printed(const Load& load, AdmissionRule rule) {
  const Outcome of = serve(load, rule);
  print(rule == AdmissionRule::guaranteed ? "guaranteed" : "balanced", of);
  return of;
}

void print(const Load& load) {
  std::printf("answers of %lld to %lld of %lld tokens, %lld slots", static_cast<long long>(load.shortest),
              static_cast<long long>(load.longest), static_cast<long long>(kMaxTokens),
              static_cast<long long>(load.park_slots));
  if (load.full_one_in > 0) std::printf(", one in %lld of full length", static_cast<long long>(load.full_one_in));
  std::printf("\n");
}

TEST(BalancedAdmission, CompletesMoreTokensThanGuaranteed) {
  const Load loads[] = {{8, 52, 200}, {8, 52, 16}, {8, 52, 0}, {8, 16, 200, 5}, {1, 104, 200}, {90, 104, 200}};
  for (const Load& load : loads) {
    print(load);
    const Outcome guaranteed = printed(load, AdmissionRule::guaranteed);
    const Outcome balanced = printed(load, AdmissionRule::balanced);
    EXPECT_EQ(guaranteed.counts.parks, 0);
    EXPECT_LE(balanced.p99, 3 * balanced.median);
    EXPECT_GE(balanced.tokens_per_step, guaranteed.tokens_per_step * (load.longest <= kMaxTokens / 2 ? 1.1 : 1));
  }
}

// A few answers are much longer than the others suggest.
TEST(BalancedAdmission, ParkingIsBetterThanStalling) {
  const Load parks{8, 16, 200, 5}, stalls{8, 16, 0, 5};
  print(parks);
  const Outcome parking = printed(parks, AdmissionRule::balanced);
  print(stalls);
  const Outcome stalling = printed(stalls, AdmissionRule::balanced);
  EXPECT_GT(parking.counts.parks, 0);
  EXPECT_EQ(stalling.counts.parks, 0);
  EXPECT_GE(parking.tokens_per_step, 1.2 * stalling.tokens_per_step);
  EXPECT_LT(parking.p99, stalling.p99);
}

}  // namespace
}  // namespace headroom
