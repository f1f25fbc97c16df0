#include "generate/waiting_line.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {
namespace {

// Takes sequences by id; the size of a prompt is what it needs.
class Line {
 public:
  explicit Line(int64_t most_passes = 2) : line(most_passes) {}
  SequenceId push(uint64_t client, size_t needs = 1) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = ++last_;
    sequence->request.client = client;
    sequence->tokens.resize(needs);
    line.push(std::move(sequence));
    line.check();
    return last_;
  }
  // 0: none.
  SequenceId take(size_t room = 1) {
    const auto taken = line.take([&](const Sequence& sequence) { return sequence.tokens.size() <= room; });
    line.check();
    return taken ? taken->id : 0;
  }

  WaitingLine line;

 private:
  SequenceId last_ = 0;
};

TEST(WaitingLine, ClientsTakeTurns) {
  Line of;
  for (const uint64_t client : {7, 7, 7, 7, 8, 9, 8}) of.push(client);
  const std::vector<SequenceId> wanted = {1, 5, 6, 2, 7, 3, 4, 0};
  for (const SequenceId id : wanted) EXPECT_EQ(of.take(), id);
}

TEST(WaitingLine, WhatDoesNotFitIsPassedASetNumberOfTimes) {
  Line of(2);
  of.push(1, 5);
  for (int i = 0; i < 4; ++i) of.push(2);
  EXPECT_EQ(of.take(), 2u);
  EXPECT_EQ(of.take(), 3u);
  EXPECT_EQ(of.take(), 0u);
  EXPECT_EQ(of.take(5), 1u);
  EXPECT_EQ(of.take(), 4u);
}

TEST(WaitingLine, TakesOutWhatIsCancelled) {
  Line of;
  of.push(1), of.push(1), of.push(2);
  EXPECT_EQ(of.line.remove(2)->id, 2u);
  EXPECT_EQ(of.line.remove(2), nullptr);
  EXPECT_EQ(of.line.remove(1)->id, 1u);
  of.line.check();
  EXPECT_EQ(of.line.size(), 1);
  EXPECT_EQ(of.line.remove_any()->id, 3u);
  EXPECT_EQ(of.line.remove_any(), nullptr);
}

// The bound stated in the header, with clients that arrive all the time.
TEST(WaitingLine, NobodyIsPassedForEver) {
  struct Wait {
    uint64_t client;
    int64_t bound, others = 0;
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    uint64_t draws = 0;
    const auto below = [&](uint64_t end) { return mix64(seed * 1000000 + draws++) % end; };
    const auto clients = 2 + static_cast<int64_t>(below(5)), passes = static_cast<int64_t>(below(4));
    Line of(passes);
    std::map<SequenceId, Wait> waiting;
    const auto push = [&] {
      const uint64_t client = below(static_cast<uint64_t>(clients));
      int64_t before = 0;
      for (const auto& [id, wait] : waiting) before += wait.client == client ? 1 : 0;
      waiting[of.push(client, 1 + below(4))] = {client, (before + 1) * (clients - 1 + passes) + before};
    };
    for (int turn = 0; turn < 3000; ++turn) {
      while (of.line.size() < 8) push();
      const SequenceId taken = of.take(1 + below(4));
      if (taken == 0) continue;
      const Wait wait = waiting.at(taken);
      EXPECT_LE(wait.others, wait.bound) << "seed " << seed;
      waiting.erase(taken);
      for (auto& [id, other] : waiting) ++other.others;
    }
  }
}

}  // namespace
}  // namespace headroom
