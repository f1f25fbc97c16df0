// Synthetic series with noise: each kind of growth is recognised.
#include "doctor/messages/growth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "doctor/messages/log_scanner.h"
#include "doctor/messages/memory_samples.h"

namespace headroom::doctor {
namespace {

constexpr double kGi = 1024.0 * 1024 * 1024;

// A fixed sequence of numbers in [-1, 1).
class Noise {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int64_t>(state_ >> 11)) / static_cast<double>(int64_t{1} << 52) - 1;
  }

 private:
  uint64_t state_ = 42;
};

template <typename Value>
std::vector<MemorySample> series(int count, Value value) {
  std::vector<MemorySample> samples;
  for (int i = 0; i < count; ++i) {
    MemorySample sample;
    sample.step = i * 10;
    value(i, sample);
    samples.push_back(sample);
  }
  return samples;
}

int64_t gib(double n) { return static_cast<int64_t>(n * kGi); }

TEST(GrowthKinds, Leak) {
  for (const double noise : {0.0, 0.05, 0.3}) {
    Noise random;
    const auto samples =
        series(200, [&](int i, MemorySample& s) { s.bytes = gib(10 + 0.01 * i + noise * random.next()); });
    const Growth growth = analyse_growth(samples, gib(16));
    EXPECT_EQ(growth.kind, GrowthKind::leak) << noise;
    EXPECT_NEAR(growth.bytes_per_step, 0.001 * kGi, 0.0002 * kGi);
    ASSERT_TRUE(growth.steps_left);
    EXPECT_NEAR(*growth.steps_left, 4000, 900);
    EXPECT_FALSE(growth.evidence.empty());
  }
}

TEST(GrowthKinds, WarmUpIsNoLeak) {
  Noise random;
  const auto samples = series(
      200, [&](int i, MemorySample& s) { s.bytes = gib(10 + 3 * (1 - std::exp(-i / 12.0)) + 0.02 * random.next()); });
  EXPECT_EQ(analyse_growth(samples).kind, GrowthKind::steady);
}

TEST(GrowthKinds, Length) {
  Noise random;
  const auto samples = series(200, [&](int, MemorySample& s) {
    s.tokens = 1000 + 900 * random.next();
    s.bytes = gib(6 + *s.tokens / 500 + 0.05 * random.next());
  });
  const Growth growth = analyse_growth(samples);
  EXPECT_EQ(growth.kind, GrowthKind::length);
  ASSERT_TRUE(growth.bytes_per_token);
  EXPECT_NEAR(*growth.bytes_per_token, kGi / 500, kGi / 5000);
}

TEST(GrowthKinds, LengthWithoutTokenCounts) {
  Noise random;
  const auto samples = series(200, [&](int, MemorySample& s) { s.bytes = gib(10 + 4 * random.next()); });
  EXPECT_EQ(analyse_growth(samples).kind, GrowthKind::length);
}

TEST(GrowthKinds, CurriculumOfGrowingLengthIsLengthNotLeak) {
  Noise random;
  const auto samples = series(200, [&](int i, MemorySample& s) {
    s.tokens = 500 + 10 * i + 100 * random.next();
    s.bytes = gib(6 + *s.tokens / 500 + 0.05 * random.next());
  });
  EXPECT_EQ(analyse_growth(samples).kind, GrowthKind::length);
}

TEST(GrowthKinds, LeakUnderVaryingLengthIsLeak) {
  Noise random;
  const auto samples = series(300, [&](int i, MemorySample& s) {
    s.tokens = 1000 + 900 * random.next();
    s.bytes = gib(6 + *s.tokens / 2000 + 0.05 * i);
  });
  EXPECT_EQ(analyse_growth(samples).kind, GrowthKind::leak);
}

TEST(GrowthKinds, Periodic) {
  Noise random;
  const auto samples =
      series(240, [&](int i, MemorySample& s) { s.bytes = gib((i % 40 == 39 ? 15 : 10) + 0.05 * random.next()); });
  const Growth growth = analyse_growth(samples);
  EXPECT_EQ(growth.kind, GrowthKind::periodic);
  EXPECT_NEAR(growth.period_steps.value_or(0), 400, 1);
}

TEST(GrowthKinds, PeaksAtEventsNeedNoRegularDistance) {
  Noise random;
  const auto samples = series(240, [&](int i, MemorySample& s) {
    const bool save = i == 40 || i == 61 || i == 190;
    s.after_event = save;
    s.bytes = gib((save ? 13 : 10) + 0.02 * random.next());
  });
  EXPECT_EQ(analyse_growth(samples).kind, GrowthKind::periodic);
}

TEST(GrowthKinds, Fragmentation) {
  Noise random;
  const auto samples = series(200, [&](int i, MemorySample& s) {
    s.bytes = gib(10 + 0.1 * random.next());
    s.reserved_bytes = gib(11 + 0.02 * i + 0.1 * random.next());
  });
  const Growth growth = analyse_growth(samples);
  EXPECT_EQ(growth.kind, GrowthKind::fragmentation);
  EXPECT_NEAR(growth.bytes_per_step, 0.002 * kGi, 0.0003 * kGi);
}

TEST(GrowthKinds, SteadyAndTooFew) {
  Noise random;
  EXPECT_EQ(analyse_growth(series(200, [&](int, MemorySample& s) { s.bytes = gib(10 + 0.01 * random.next()); })).kind,
            GrowthKind::steady);
  EXPECT_EQ(analyse_growth(series(5, [&](int i, MemorySample& s) { s.bytes = gib(10 + i); })).kind,
            GrowthKind::unknown);
  EXPECT_EQ(analyse_growth({}).kind, GrowthKind::unknown);
}

TEST(Samples, Lines) {
  const auto detectron =
      memory_sample("[05/01 12:00:00 d2.utils.events]: eta: 1:02:03  iter: 419  total_loss: 1.1  max_mem: 9034M");
  ASSERT_TRUE(detectron);
  EXPECT_EQ(detectron->step, 419);
  EXPECT_EQ(detectron->bytes, 9034LL << 20);
  const auto metrics = memory_sample(
      "{\"step\": 7, \"loss\": 2.5, \"num_tokens\": 4096, \"memory/max_reserved(GiB)\": 12.5, "
      "\"memory/max_allocated(GiB)\": 10.25}");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->step, 7);
  EXPECT_EQ(metrics->bytes, gib(10.25));
  EXPECT_EQ(metrics->reserved_bytes, gib(12.5));
  EXPECT_EQ(metrics->tokens, 4096);
  const auto plain = memory_sample("step 12 | loss 2.1 | mem 12.3GB");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->bytes, gib(12.3));
  const auto raw = memory_sample("{\"memory_allocated\": 123456789, \"step\": 3}");
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->bytes, 123456789);
  EXPECT_FALSE(memory_sample("loss 2.1"));
  EXPECT_FALSE(memory_sample("total memory: 80 GiB"));
  EXPECT_FALSE(memory_sample("free mem 10 GiB"));
  EXPECT_FALSE(memory_sample(""));
}

TEST(Samples, FromALogToItsGrowth) {
  std::string log;
  for (int i = 0; i < 20000; ++i) {
    log += "step " + std::to_string(i) + " loss 1.0 mem " + std::to_string(8000 + i / 4) + "MiB\n";
  }
  const LogReport report = scan_log(log);
  EXPECT_EQ(report.growth.kind, GrowthKind::leak);
  EXPECT_NEAR(report.growth.bytes_per_step, 0.25 * 1024 * 1024, 0.01 * 1024 * 1024);
  EXPECT_LE(report.growth.samples, static_cast<int64_t>(SampleStore::kMost));
}

}  // namespace
}  // namespace headroom::doctor
