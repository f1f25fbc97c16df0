#include "data/batch_reader.h"

#include <gtest/gtest.h>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/token_cache_writer.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

class Batches : public testing::Test {
 protected:
  Batches() : cache_(make(directory_)) {}

  // Sequence i has i + 1 ids with the value 10 i + position; the first i / 2 are not scored.
  static TokenCache make(const TemporaryDirectory& directory) {
    TokenCacheWriter writer(directory / "c", 1, 6, 100);
    for (int32_t i = 0; i < 5; ++i) {
      Ids ids;
      for (int32_t t = 0; t <= i; ++t) ids.push_back(10 * i + t);
      writer.append(ids, i / 2);
    }
    writer.finish({});
    return TokenCache::open(directory / "c");
  }

  TemporaryDirectory directory_;
  TokenCache cache_;
};

TEST_F(Batches, ArePaddedAndCounted) {
  BatchReader reader(cache_, SampleOrder(5, 0, false), 6, 4);
  const int64_t targets = reader.begin(samples_of_step(0, 5, 4));
  EXPECT_EQ(targets, 0 + 1 + 2 + 3);
  EXPECT_EQ(reader.tokens(), 1 + 2 + 3 + 4);
  EXPECT_EQ(reader.longest(0, 4), 4);
  EXPECT_EQ(reader.longest(0, 2), 2);
  Ids ids(12, 77), labels(12, 77);
  EXPECT_EQ(reader.fill(2, 2, ids, labels), 5);
  EXPECT_EQ(ids, (Ids{20, 21, 22, 0, 0, 0, 30, 31, 32, 33, 0, 0}));
  EXPECT_EQ(labels, (Ids{-100, 21, 22, -100, -100, -100, -100, 31, 32, 33, -100, -100}));
}

TEST_F(Batches, TheLastOneOfAnEpochIsShorterAndMissingRowsArePadding) {
  BatchReader reader(cache_, SampleOrder(5, 0, false), 8, 4);
  EXPECT_EQ(reader.begin(samples_of_step(1, 5, 4)), 3);
  Ids ids(16, 77), labels(16, 77);
  EXPECT_EQ(reader.fill(0, 2, ids, labels), 3);
  EXPECT_EQ(ids, (Ids{40, 41, 42, 43, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(labels, (Ids{-100, -100, 42, 43, 44, -100, -100, -100, -100, -100, -100, -100, -100, -100, -100, -100}));
  EXPECT_EQ(reader.fill(2, 2, ids, labels), 0);
  EXPECT_EQ(ids, Ids(16, 0));
  EXPECT_EQ(labels, Ids(16, -100));
  EXPECT_EQ(reader.longest(1, 3), 0);
}

// However a global batch is split, the rows together and the targets are the same.
TEST_F(Batches, AnySplitGivesTheSameRows) {
  BatchReader reader(cache_, SampleOrder(5, 3, true), 6, 5);
  for (int64_t step = 0; step < 4; ++step) {
    const int64_t targets = reader.begin(samples_of_step(step, 5, 5));
    EXPECT_EQ(targets, cache_.counts().targets);
    Ids whole_ids(30), whole_labels(30);
    EXPECT_EQ(reader.fill(0, 5, whole_ids, whole_labels), targets);
    for (int64_t micro = 1; micro <= 5; ++micro) {
      Ids all_ids, all_labels;
      int64_t sum = 0;
      for (int64_t row = 0; row < 5; row += micro) {
        Ids ids(static_cast<size_t>(6 * micro)), labels(ids);
        sum += reader.fill(row, micro, ids, labels);
        all_ids.insert(all_ids.end(), ids.begin(), ids.end());
        all_labels.insert(all_labels.end(), labels.begin(), labels.end());
      }
      EXPECT_EQ(sum, targets);
      all_ids.resize(30);
      all_labels.resize(30);
      EXPECT_EQ(all_ids, whole_ids);
      EXPECT_EQ(all_labels, whole_labels);
    }
  }
}

TEST_F(Batches, WrongSizesAreInvariants) {
  EXPECT_THROW(BatchReader(cache_, SampleOrder(4, 0, false), 6, 4), InternalError);
  EXPECT_THROW(BatchReader(cache_, SampleOrder(5, 0, false), 5, 4), InternalError);
  BatchReader reader(cache_, SampleOrder(5, 0, false), 6, 4);
  EXPECT_THROW(reader.begin({0, 5, 0}), InternalError);
  reader.begin({0, 4, 0});  // rows of 1 to 4 tokens
  Ids narrow(3), uneven(9), wide(14);
  EXPECT_THROW(reader.fill(3, 1, narrow, narrow), InternalError);
  EXPECT_THROW(reader.fill(0, 2, uneven, uneven), InternalError);
  EXPECT_THROW(reader.fill(0, 2, wide, wide), InternalError);
}

}  // namespace
}  // namespace headroom
