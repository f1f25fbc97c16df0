#include "data/row_targets.h"

#include <gtest/gtest.h>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/token_cache_writer.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kMask = 4;

RowTargets masked(double probability, uint64_t seed = 1, int32_t pad = 0) {
  return {pad, false, {probability, seed, kMask, 1000, {0, 2, 3, kMask}}};
}

struct Row {
  Ids ids, labels;
  int64_t targets = 0;
  bool operator==(const Row&) const = default;
};

Row row_of(const RowTargets& targets, int64_t sample, const Ids& ids) {
  Row row{ids, ids, 0};
  SequenceInfo info{static_cast<int64_t>(ids.size()), static_cast<int64_t>(ids.size()), true};
  row.targets = targets.place(sample, info, row.ids, row.labels);
  return row;
}

Ids text(size_t length) {
  Ids ids(length);
  for (size_t t = 0; t < length; ++t) ids[t] = static_cast<int32_t>(10 + t % 900);
  ids.front() = 2;
  ids.back() = 3;
  return ids;
}

TEST(RowTargets, MaskTokensInTheSharesOfBert) {
  const Ids ids = text(20000);
  const Row row = row_of(masked(0.15), 7, ids);
  int64_t targets = 0, mask = 0, same = 0, random = 0;
  for (size_t t = 0; t < ids.size(); ++t) {
    if (row.labels[t] == kIgnoredLabel) {
      EXPECT_EQ(row.ids[t], ids[t]);
      continue;
    }
    ++targets;
    EXPECT_EQ(row.labels[t], ids[t]);
    mask += row.ids[t] == kMask;
    same += row.ids[t] == ids[t];
    random += row.ids[t] != kMask && row.ids[t] != ids[t];
  }
  EXPECT_EQ(row.targets, targets);
  const auto share = [&](int64_t n) { return static_cast<double>(n) / static_cast<double>(targets); };
  EXPECT_NEAR(static_cast<double>(targets) / 20000, 0.15, 0.01);  // 4 standard deviations
  EXPECT_NEAR(share(mask), 0.8, 0.03);
  EXPECT_NEAR(share(same), 0.1, 0.022);
  EXPECT_NEAR(share(random), 0.1, 0.022);
}

TEST(RowTargets, NeverMaskSpecialTokensNorPutPaddingIn) {
  const Ids ids{2, 10, 0, 11, kMask, 12, 3};
  for (int64_t sample = 0; sample < 3000; ++sample) {
    const Row row = row_of(masked(1, 3, 10), sample, ids);
    EXPECT_EQ(row.targets, 3);
    for (const size_t t : {0, 2, 4, 6}) {
      EXPECT_EQ(row.ids[t], ids[t]);
      EXPECT_EQ(row.labels[t], kIgnoredLabel);
    }
    for (const size_t t : {3, 5}) EXPECT_NE(row.ids[t], 10);
    EXPECT_EQ(row.labels[5], 12);
  }
}

TEST(RowTargets, AreAFunctionOfSeedAndSample) {
  const Ids ids = text(300);
  const Row row = row_of(masked(0.15), 7, ids);
  EXPECT_EQ(row_of(masked(0.15), 7, ids), row);
  EXPECT_NE(row_of(masked(0.15), 8, ids).labels, row.labels);
  EXPECT_NE(row_of(masked(0.15, 2), 7, ids).labels, row.labels);
  EXPECT_EQ(row_of(masked(0), 7, ids).targets, 0);
}

TEST(RowTargets, ClassesStandAtOneEnd) {
  const SequenceInfo info{3, 1, false, 6};
  for (const bool at_end : {false, true}) {
    Ids ids{7, 8, 9}, labels(3, kIgnoredLabel);
    EXPECT_EQ(RowTargets(1, at_end, {}).place(0, info, ids, labels), 1);
    EXPECT_EQ(labels, at_end ? (Ids{-100, -100, 6}) : (Ids{6, -100, -100}));
  }
}

TEST(RowTargets, ReachTheBatches) {
  TemporaryDirectory directory;
  {
    TokenCacheWriter writer(directory / "c", 1, 40, 1000, LabelKind::own_position);
    for (size_t i = 0; i < 6; ++i) writer.append(text(40 - i), 0);
    writer.append(Ids{10, 11}, Ids{20, -100});  // masked already
    writer.finish({});
  }
  const TokenCache cache = TokenCache::open(directory / "c");
  BatchReader masking(cache, SampleOrder(7, 5, true), 40, 7, masked(0.3, 1, 1));
  BatchReader resumed(cache, SampleOrder(7, 5, true), 40, 3, masked(0.3, 1, 1));
  const int64_t targets = masking.begin({7, 7, 1});
  Ids ids(280), labels(280), part_ids(120), part_labels(120);
  EXPECT_EQ(masking.fill(0, 7, ids, labels), targets);
  EXPECT_GT(targets, 20);
  EXPECT_LT(targets, 120);
  EXPECT_EQ(ids[static_cast<size_t>(masking.longest(0, 1))], masking.longest(0, 1) < 40 ? 1 : ids[40]);
  EXPECT_LE(resumed.begin({9, 3, 1}), targets);
  resumed.fill(0, 3, part_ids, part_labels);
  EXPECT_EQ(part_ids, Ids(ids.begin() + 80, ids.begin() + 200));
  EXPECT_EQ(part_labels, Ids(labels.begin() + 80, labels.begin() + 200));
}

// A cache written for another model's vocabulary or classes: the error comes before any device reads a row.
TEST(RowTargets, AreRefusedBeyondTheModel) {
  TemporaryDirectory directory;
  {
    TokenCacheWriter writer(directory / "c", 1, 4, 1000, LabelKind::next_token);
    writer.append(Ids{10, 11, 12}, Ids{-100, 11, 12});
    writer.append(Ids{10, 500, 12}, Ids{-100, -100, 12});
    writer.append(Ids{10, 11, 12}, Ids{-100, 7, 300});
    writer.finish({});
  }
  const TokenCache cache = TokenCache::open(directory / "c");
  const auto fill = [&](RowLimits limits, int64_t row) {
    BatchReader reader(cache, SampleOrder(3, 0, false), 4, 3, RowTargets(0, true, {}, limits));
    reader.begin({0, 3, 0});
    Ids ids(4), labels(4);
    reader.fill(row, 1, ids, labels);
  };
  for (int64_t row : {0, 1, 2}) EXPECT_NO_THROW(fill({501, 301}, row));
  EXPECT_NO_THROW(fill({13, 13}, 0));
  EXPECT_THROW(fill({500, 301}, 1), Error);
  EXPECT_THROW(fill({501, 300}, 2), Error);
}

}  // namespace
}  // namespace headroom
