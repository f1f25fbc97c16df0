#include "data/pack_index.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "../formats/temporary_directory.h"
#include "base/error.h"
#include "data/batch_reader.h"
#include "data/best_fit.h"
#include "data/token_cache_writer.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

std::vector<int32_t> fit(const std::vector<int32_t>& lengths, int32_t capacity) {
  std::vector<int32_t> bin_of(lengths.size());
  best_fit_decreasing(lengths, capacity, bin_of);
  return bin_of;
}

TEST(BestFit, TakesTheFullestBinThatHolds) {
  //                       descending: 7 6 5 3 3 2: [7] [6] [5], 3 fits 7 exactly, 3 fits 6 better than 5, 2 fits 5
  EXPECT_EQ(fit({3, 6, 2, 7, 5, 3}, 10), (std::vector<int32_t>{0, 1, 2, 0, 2, 1}));
  EXPECT_EQ(fit({10, 10, 1}, 10), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(fit({64, 64, 64}, 128), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(fit({}, 5), std::vector<int32_t>{});
}

// Finds every bin by checking all of them.
std::vector<int32_t> plain_best_fit(const std::vector<int32_t>& lengths, int32_t capacity) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::pair<int32_t, int64_t>> bins;  // room, and when it got that room
  std::vector<int32_t> bin_of(lengths.size());
  int64_t time = 0;
  for (size_t item : order) {
    size_t best = bins.size();
    for (size_t bin = 0; bin < bins.size(); ++bin)
      if (bins[bin].first >= lengths[item] &&
          (best == bins.size() || bins[bin].first < bins[best].first ||
           (bins[bin].first == bins[best].first && bins[bin].second > bins[best].second)))
        best = bin;
    if (best == bins.size()) bins.emplace_back(capacity, 0);
    bins[best] = {bins[best].first - lengths[item], ++time};
    bin_of[item] = static_cast<int32_t>(best);
  }
  return bin_of;
}

TEST(BestFit, IsThePlainOne) {
  std::mt19937 random(7);
  for (int32_t capacity : {1, 2, 63, 64, 65, 500})
    for (int round = 0; round < 20; ++round) {
      std::vector<int32_t> lengths(random() % 200);
      for (int32_t& length : lengths) length = 1 + static_cast<int32_t>(random() % static_cast<uint32_t>(capacity));
      EXPECT_EQ(fit(lengths, capacity), plain_best_fit(lengths, capacity)) << capacity;
    }
}

class Packs : public testing::Test {
 protected:
  // Sequence i has `lengths[i]` ids, all of them i.
  TokenCache make(const std::vector<int64_t>& lengths, int64_t longest = 10) {
    TokenCacheWriter writer(directory_ / "cache", 1, longest, 100000);
    for (size_t i = 0; i < lengths.size(); ++i)
      writer.append(Ids(static_cast<size_t>(lengths[i]), static_cast<int32_t>(i)), 0);
    writer.finish({});
    return TokenCache::open(directory_ / "cache");
  }
  PackIndex pack(const TokenCache& cache, int64_t length = 10, uint64_t seed = 0, bool shuffle = false) {
    return PackIndex::open_or_build(cache, SampleOrder(cache.sequences(), seed, shuffle), length, path());
  }
  std::filesystem::path path() const { return directory_ / "packs"; }

  TemporaryDirectory directory_;
};

std::vector<int64_t> sequences_of(const PackIndex& packs, int64_t pack) {
  const PackInfo info = packs.info(pack);
  std::vector<int64_t> out(static_cast<size_t>(info.sequences));
  packs.sequences(info, 0, out);
  return out;
}

TEST_F(Packs, HoldEverySequenceOnceAndNoneTooMany) {
  std::mt19937 random(3);
  std::vector<int64_t> lengths(PackIndex::kWindow + 5000);
  for (int64_t& length : lengths) length = 1 + static_cast<int64_t>(random() % 60);
  const TokenCache cache = make(lengths, 64);
  const PackIndex packs = pack(cache, 64, 5, true);
  std::vector<int> seen(lengths.size());
  int64_t tokens = 0;
  for (int64_t i = 0; i < packs.packs(); ++i) {
    const PackInfo info = packs.info(i);
    int64_t sum = 0, targets = 0;
    for (int64_t sequence : sequences_of(packs, i)) {
      ++seen[static_cast<size_t>(sequence)];
      sum += lengths[static_cast<size_t>(sequence)];
      targets += lengths[static_cast<size_t>(sequence)] - 1;
    }
    ASSERT_EQ(info.length, sum);
    ASSERT_EQ(info.targets, targets);
    ASSERT_LE(sum, 64);
    tokens += sum;
  }
  EXPECT_EQ(seen, std::vector<int>(lengths.size(), 1));
  EXPECT_GT(static_cast<double>(tokens), 0.99 * 64 * static_cast<double>(packs.packs()));  // hardly any padding
}

TEST_F(Packs, AreReusedUntilWhatMadeThemChanges) {
  const TokenCache cache = make({3, 6, 2, 7, 5, 3});
  const uint64_t key = pack(cache).key();
  const auto written = std::filesystem::last_write_time(path());
  EXPECT_EQ(pack(cache).key(), key);
  EXPECT_EQ(std::filesystem::last_write_time(path()), written);
  EXPECT_NE(pack(cache, 12).key(), key);
  EXPECT_NE(pack(cache, 10, 1, true).key(), pack(cache, 10, 2, true).key());
}

TEST_F(Packs, DamagedOnesAreMadeAgainAndNeverFollowed) {
  const TokenCache cache = make({3, 6, 2, 7, 5, 3});
  pack(cache);
  std::vector<char> bytes(std::filesystem::file_size(path()));
  std::ifstream(path(), std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<char> bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    std::ofstream(path(), std::ios::binary).write(bad.data(), static_cast<std::streamsize>(bad.size()));
    try {
      const PackIndex packs = pack(cache);
      BatchReader reader(cache, SampleOrder(packs.packs(), 0, false), 10, 3, {}, &packs);
      Ids ids(30), labels(30);
      reader.begin({0, packs.packs(), 0});
      reader.fill(0, 3, ids, labels);  // a changed list of sequences is within the cache and fits, or is refused
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
    }
    std::filesystem::remove(path());
  }
}

TEST_F(Packs, BatchesSayWhereEachSequenceBegins) {
  const TokenCache cache = make({3, 6, 2, 7, 5, 3});
  const PackIndex packs = pack(cache);
  ASSERT_EQ(packs.packs(), 3);  // {0, 3}, {1, 5}, {2, 4}
  BatchReader reader(cache, SampleOrder(3, 0, false), 10, 4, {}, &packs);
  EXPECT_EQ(reader.begin({0, 3, 0}), 2 + 6 + 5 + 2 + 1 + 4);
  EXPECT_EQ(reader.tokens(), 26);
  Ids ids(40, 77), labels(40, 77), starts(40, 77);
  EXPECT_EQ(reader.fill(0, 4, ids, labels), 20);
  reader.fill_starts(0, 4, starts);
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 20), (Ids{0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 5, 5, 5, 0}));
  constexpr int32_t no = kIgnoredLabel;
  EXPECT_EQ(Ids(labels.begin(), labels.begin() + 20),
            (Ids{no, 0, 0, no, 3, 3, 3, 3, 3, 3, no, 1, 1, 1, 1, 1, no, 5, 5, no}));
  EXPECT_EQ(Ids(starts.begin() + 10, starts.end()),
            (Ids{0, 0, 0, 0, 0, 0, 6, 6, 6, 9, 0, 0, 2, 2, 2, 2, 2, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace headroom
