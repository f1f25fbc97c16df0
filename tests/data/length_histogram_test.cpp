#include "data/length_histogram.h"

#include <gtest/gtest.h>

#include <fstream>

#include "../formats/temporary_directory.h"
#include "data/token_cache_builder.h"
#include "data/token_cache_writer.h"
#include "formats/json.h"

namespace headroom {
namespace {

TEST(LengthHistogram, EdgesAscendByHalves) {
  EXPECT_EQ(LengthHistogram::edge(0), 16);
  EXPECT_EQ(LengthHistogram::edge(1), 24);
  EXPECT_EQ(LengthHistogram::edge(2), 32);
  EXPECT_EQ(LengthHistogram::edge(32), 1 << 20);
  EXPECT_EQ(LengthHistogram::edge(33), INT64_MAX);
}

TEST(LengthHistogram, LossesAreExactAtEveryEdge) {
  const std::vector<int64_t> rows{1, 16, 17, 24, 25, 100, 128, 129, 500, 4000, 2'000'000};
  LengthHistogram lengths;
  for (int64_t row : rows) lengths.add(row);
  EXPECT_EQ(lengths.rows(), static_cast<int64_t>(rows.size()));
  for (size_t bin = 0; bin + 1 < LengthHistogram::kBins; ++bin) {
    const int64_t cut = LengthHistogram::edge(bin);
    int64_t lost = 0, cut_rows = 0;
    for (int64_t row : rows) lost += std::max<int64_t>(0, row - cut), cut_rows += row > cut;
    EXPECT_EQ(lengths.lost_tokens(cut), lost) << cut;
    EXPECT_EQ(lengths.cut_rows(cut), cut_rows) << cut;
  }
  EXPECT_EQ(lengths.quantile(0.5), 128);
  EXPECT_EQ(lengths.quantile(1), INT64_MAX);
  EXPECT_EQ(LengthHistogram().quantile(0.5), 0);
}

TEST(LengthHistogram, TextAndJsonSayTheSame) {
  LengthHistogram lengths;
  for (int64_t row : {100, 200, 300}) lengths.add(row);
  EXPECT_EQ(length_cuts(1024), (std::vector<int64_t>{128, 256, 512, 1024}));
  EXPECT_EQ(length_cuts(100), std::vector<int64_t>{16});
  EXPECT_EQ(
      describe_lengths(lengths, 1024),
      "row lengths: half up to 256 tokens, 95 % up to 384 tokens; cut at 128 loses 40.7 %; cut at 256 loses 7.3 %");
  EXPECT_EQ(describe_lengths({}, 1024), "");
  const Json json = Json::parse(lengths_json(lengths, 256));
  EXPECT_EQ(json.at("tokens"), 600);
  EXPECT_EQ(json.at("histogram").size(), 3u);
  EXPECT_EQ(json.at("histogram").at(0), (Json{{"up_to", 128}, {"rows", 1}, {"tokens", 100}}));
  EXPECT_EQ(json.at("cuts").at(1), (Json{{"length", 256}, {"cut_rows", 1}, {"lost_tokens", 44}}));
}

// The cache counts rows before they are cut, and keeps exactly the first ids of a cut row.
TEST(LengthHistogram, IsOfTheRowsBeforeTheCut) {
  const TemporaryDirectory directory;
  std::vector<std::vector<int32_t>> rows{{}, {}, {}};
  for (int32_t i = 0; i < 40; ++i) rows[0].push_back((i * 7) % 50), rows[2].push_back((i * 11) % 50);
  rows[1] = {3, 1, 4};
  std::ofstream file(directory / "rows.jsonl");
  for (const auto& row : rows) file << Json{{"input_ids", row}, {"labels", row}}.dump() << '\n';
  file.close();
  DataOptions options;
  options.files = {directory / "rows.jsonl"};
  options.vocab_size = 50;
  for (int64_t cut : {2, 16, 39, 40, 64}) {
    options.max_seq_length = cut;
    const TokenCache cache = open_or_build_token_cache(options, nullptr, directory / "cache");
    EXPECT_EQ(cache.counts().lengths.rows(), 3);
    EXPECT_EQ(cache.counts().lengths.tokens(), 83);
    EXPECT_EQ(cache.counts().lengths.lost_tokens(16), 48);
    EXPECT_EQ(cache.counts().lost_tokens, 2 * std::max<int64_t>(0, 40 - cut) + std::max<int64_t>(0, 3 - cut));
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<int32_t> ids(64), labels(64);
      const auto length = static_cast<size_t>(cache.read(static_cast<int64_t>(i), ids, labels).length);
      ASSERT_EQ(length, std::min(rows[i].size(), static_cast<size_t>(cut)));
      for (size_t t = 0; t < length; ++t) ASSERT_EQ(ids[t], rows[i][t]);
    }
    EXPECT_EQ(TokenCache::open(directory / "cache").counts(), cache.counts());  // as it was written
  }
}

}  // namespace
}  // namespace headroom
