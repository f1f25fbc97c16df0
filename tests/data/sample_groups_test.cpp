#include "data/sample_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../formats/temporary_directory.h"
#include "data/batch_reader.h"
#include "data/token_cache_writer.h"

namespace headroom {
namespace {

class Groups : public testing::Test {
 protected:
  TokenCache make(size_t sequences) {
    std::mt19937 random(11);
    TokenCacheWriter writer(directory_ / "cache", 1, 64, 100);
    for (size_t i = 0; i < sequences; ++i) {
      lengths_.push_back(1 + static_cast<int64_t>(random() % 64));
      writer.append(std::vector<int32_t>(static_cast<size_t>(lengths_.back()), 7), 0);
    }
    writer.finish({});
    return TokenCache::open(directory_ / "cache");
  }
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }

  TemporaryDirectory directory_;
  std::vector<int64_t> lengths_;
};

TEST_F(Groups, AnEpochVisitsEachSequenceOnceInAnyOrderOfAsking) {
  const int64_t count = 4 * SampleGroups::kBatches + 3 * 4 + 1;  // a full window, and a partial one with a short batch
  const TokenCache cache = make(static_cast<size_t>(count));
  for (bool shuffle : {false, true}) {
    SampleGroups groups(cache, SampleOrder(count, 5, shuffle), 4), backwards = groups;
    std::vector<int64_t> visited(static_cast<size_t>(2 * count));
    for (int64_t sample = 0; sample < 2 * count; ++sample) visited[static_cast<size_t>(sample)] = groups.at(sample);
    for (int64_t sample = 2 * count; sample-- > 0;)
      ASSERT_EQ(backwards.at(sample), visited[static_cast<size_t>(sample)]) << sample;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<int64_t> once(visited.begin() + epoch * count, visited.begin() + (epoch + 1) * count);
      std::sort(once.begin(), once.end());
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(once[static_cast<size_t>(i)], i);
    }
    EXPECT_EQ(std::equal(visited.begin(), visited.begin() + count, visited.begin() + count), !shuffle);
  }
}

TEST_F(Groups, BatchesAreOfSimilarLengths) {
  const TokenCache cache = make(512);
  SampleGroups groups(cache, SampleOrder(512, 5, true), 8);
  int64_t padding = 0, plain = 0;
  const SampleOrder order(512, 5, true);
  for (int64_t batch = 0; batch < 512; batch += 8) {
    int64_t longest = 0, longest_plain = 0;
    for (int64_t i = batch; i < batch + 8; ++i) {
      longest = std::max(longest, length(groups.at(i)));
      longest_plain = std::max(longest_plain, length(order.at(i)));
    }
    for (int64_t i = batch; i < batch + 8; ++i) {
      padding += longest - length(groups.at(i));
      plain += longest_plain - length(order.at(i));
    }
  }
  EXPECT_LT(padding, plain / 20);
}

// A batch is filled at the requested width, starting with its longest row.
TEST_F(Groups, RowsAreAsWideAsAsked) {
  const TokenCache cache = make(16);
  BatchReader reader(cache, SampleOrder(16, 0, false), 64, 4, {}, nullptr, true);
  for (int64_t first = 0; first < 16; first += 4) {
    reader.begin({first, 4, 0});
    const int64_t longest = reader.longest(0, 4);
    for (int64_t width : {longest, std::min<int64_t>(64, longest + 3)}) {
      std::vector<int32_t> ids(static_cast<size_t>(4 * width), -1), labels = ids;
      reader.fill(0, 4, ids, labels);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), 7), reader.tokens());
      EXPECT_EQ(std::count(ids.begin(), ids.end(), -1), 0);
    }
  }
}

}  // namespace
}  // namespace headroom
