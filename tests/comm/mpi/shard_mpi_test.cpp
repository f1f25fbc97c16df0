// Runs under mpirun: every rank runs the same tests. A failing rank ends the job, so that no other rank waits for it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <numeric>

#include "base/threads.h"
#include "shard_probe.h"

namespace headroom {
namespace {

using namespace shard_probe;

constexpr size_t kSizes[] = {1, 2, 31, 100, 1000, 4097};

float addend(int rank, size_t i) {
  return static_cast<float>(noise("addend", static_cast<uint64_t>(rank) * 100000 + i));
}

// The sum over the ranks, added in their order.
template <typename T>
T expected_sum(int ranks, size_t i) {
  T sum = static_cast<T>(addend(0, i));
  for (int rank = 1; rank < ranks; ++rank) sum += static_cast<T>(addend(rank, i));
  return sum;
}

class Collectives : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { group_ = make_mpi_process_group(GetParam()); }
  size_t shard_of(size_t full) const { return (full + ranks() - 1) / ranks(); }
  size_t ranks() const { return static_cast<size_t>(group_->size()); }
  std::unique_ptr<ProcessGroup> group_;
};

TEST_P(Collectives, AllGatherCutsTheEnd) {
  for (size_t full : kSizes) {
    std::vector<float> local(shard_of(full), -1), whole(full + 1, 7);
    const size_t begin = static_cast<size_t>(group_->rank()) * local.size();
    for (size_t i = 0; i < local.size(); ++i) local[i] = static_cast<float>(begin + i);
    group_->all_gather(std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(whole).first(full)));
    for (size_t i = 0; i < full; ++i) ASSERT_EQ(whole[i], static_cast<float>(i)) << full;
    EXPECT_EQ(whole[full], 7);
  }
}

TEST_P(Collectives, ReduceScatterSumsInRankOrder) {
  for (size_t full : kSizes) {
    std::vector<float> whole(full), local(shard_of(full), -1);
    for (size_t i = 0; i < full; ++i) whole[i] = addend(group_->rank(), i);
    group_->reduce_scatter(whole, local);
    for (size_t i = 0; i < local.size(); ++i) {
      const size_t at = static_cast<size_t>(group_->rank()) * local.size() + i;
      ASSERT_EQ(local[i], at < full ? expected_sum<float>(group_->size(), at) : 0.0f) << full << " " << i;
    }
  }
}

TEST_P(Collectives, AllReduceSumsInRankOrder) {
  for (size_t count : kSizes) {
    std::vector<float> single(count);
    std::vector<double> twice(count);
    for (size_t i = 0; i < count; ++i) single[i] = addend(group_->rank(), i), twice[i] = single[i];
    group_->all_reduce(single);
    group_->all_reduce(twice);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(single[i], expected_sum<float>(group_->size(), i));
      ASSERT_EQ(twice[i], expected_sum<double>(group_->size(), i));
    }
  }
}

// With 256 bytes: many pieces.
INSTANTIATE_TEST_SUITE_P(Staging, Collectives, testing::Values(256, 1 << 20));

struct Tolerance {
  double loss = 1e-6;
  double weight = 1e-5;
};

// Trains alone and sharded, and compares losses, gradient norms, weights and states.
void compare(const Options& options, int64_t micro_batch, Tolerance tolerance = {}) {
  const std::unique_ptr<ProcessGroup> group = make_mpi_process_group();
  const int64_t batch = 2 * group->size();
  Options chosen = options;
  chosen.candidate[techniques::micro_batch].count = micro_batch;
  const Planned plain = make_plan(chosen, 1, cpu_facts(1)), sharded = make_plan(chosen, group->size(), cpu_facts(1));
  Trainer alone(plain, nullptr, batch, micro_batch), together(sharded, group.get(), batch, micro_batch);
  const std::vector<double> expected = alone.train(3), losses = together.train(3);
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(losses[step], expected[step], tolerance.loss * expected[step]) << "step " << step;
  for (size_t step = 0; step < 3; ++step)
    EXPECT_NEAR(together.norms()[step], alone.norms()[step], 10 * tolerance.loss * alone.norms()[step]);
  EXPECT_LT(expected[3], expected[2]) << "the update does not lower the loss of its own batch";
  double worst = 0;
  for (const std::string& name : alone.trained_names()) {
    const std::vector<float> one = alone.whole(name), all = together.whole(name);
    for (size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(all[i]) - one[i]));
  }
  EXPECT_LE(worst, tolerance.weight);
  EXPECT_EQ(together.arena_high_water(), sharded.plan.arena_bytes);
  if (group->rank() > 0) return;
  fmt::print("1 process: losses {:.9f}, {} persistent bytes, arena {}\n", fmt::join(expected, " "),
             training_bytes(plain.plan), plain.plan.arena_bytes);
  fmt::print("{} processes: losses {:.9f}, {} persistent bytes, arena {}, weights and states differ by {:.2g}\n",
             group->size(), fmt::join(losses, " "), training_bytes(sharded.plan), sharded.plan.arena_bytes, worst);
}

TEST(Shard, TrainsAsOneProcess) {
  compare({}, 1);
  compare({}, 2);
}

TEST(Shard, TrainsTiedWeightsAsOneProcess) {
  Options options;
  options.tied = true;
  compare(options, 1);
  compare(options, 2);
}

TEST(Shard, TrainsWithRecomputation) {
  Options options;
  options.layers = 2;
  options.candidate[techniques::recompute] = keep_setting(2, 1, Keep::block_input, Keep::no_cheap);
  options.candidate[techniques::chunked_loss].count = 5;
  compare(options, 1);
}

// Rounding to bf16 amplifies differences in the last bits of a sum.
TEST(Shard, TrainsInBf16Mixed) {
  Options options;
  options.precision = "bf16-mixed";
  for (const bool copies : {false, true}) {
    options.candidate[techniques::bf16_mixed] = mixed(copies);
    compare(options, 1, {1e-4, 2e-3});
  }
}

TEST(Shard, SplitsPersistentBytes) {
  const std::unique_ptr<ProcessGroup> group = make_mpi_process_group();
  const int64_t one = training_bytes(make_plan({}, 1, cpu_facts(1)).plan);
  const int64_t each = training_bytes(make_plan({}, group->size(), cpu_facts(1)).plan);
  EXPECT_GE(each * group->size(), one);
  EXPECT_LE(static_cast<double>(each * group->size()), 1.1 * static_cast<double>(one));
}

TEST(Shard, RepeatsToTheBit) {
  const std::unique_ptr<ProcessGroup> group = make_mpi_process_group();
  const Planned planned = make_plan({}, group->size(), cpu_facts(1));
  Trainer first(planned, group.get(), 2 * group->size(), 1), second(planned, group.get(), 2 * group->size(), 1);
  EXPECT_EQ(first.train(3), second.train(3));
  for (const std::string& name : first.trained_names()) {
    const std::vector<float> a = first.whole(name), b = second.whole(name);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << name;
  }
}

class EndJobOnFailure final : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Failed()) MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  headroom::set_threads(1);  // the thread count for which this test's plans are made
  testing::UnitTest::GetInstance()->listeners().Append(new headroom::EndJobOnFailure);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
