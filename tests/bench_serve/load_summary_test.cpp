// The summary of a load as table, JSON and page.
#include "bench_serve/load_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../report/well_formed.h"
#include "formats/json.h"

namespace headroom::bench {
namespace {

using ::testing::HasSubstr;

// Two completed requests (1 + 2 and 2 + 4 seconds, 3 and 5 tokens), a refusal and a broken stream.
LoadResult small_result() {
  LoadResult result;
  result.seconds = 8;
  result.most_running = 3;
  for (const double scale : {1.0, 2.0}) {
    RequestRecord record;
    record.outcome = Outcome::completed;
    record.status = 200;
    record.begun = 1;
    record.first = 1 + scale;
    record.last = record.ended = 1 + 3 * scale;
    record.gaps = {static_cast<float>(scale), static_cast<float>(scale)};
    record.pieces = 3;
    record.input_tokens = 10;
    record.output_tokens = scale == 1 ? 3 : 5;
    result.records.push_back(record);
  }
  RequestRecord refused;
  refused.outcome = Outcome::refused;
  refused.status = 503;
  refused.retry_after = true;
  refused.message = "too <many> wait";
  result.records.push_back(refused);
  RequestRecord broken;
  broken.outcome = Outcome::broken;
  broken.message = "cut";
  result.records.push_back(broken);
  for (int i = 0; i < 6; ++i) result.samples.push_back({i * 1.0, i % 3, i, i, i / 3, 10 * i, 0});
  return result;
}

LoadSummary small_summary() {
  LoadOptions options;
  options.base_url = "http://a:1";
  options.model = "a & <b>";
  options.max_concurrency = 3;
  return summarise(options, small_result(), nullptr);
}

TEST(Distribution, HasTheQuantilesOfNumpy) {
  const Distribution values({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(values.quantile(0), 1);
  EXPECT_DOUBLE_EQ(values.quantile(0.5), 2.5);
  EXPECT_DOUBLE_EQ(values.quantile(0.9), 3.7);
  EXPECT_DOUBLE_EQ(values.quantile(1), 4);
  EXPECT_DOUBLE_EQ(values.mean(), 2.5);
  EXPECT_NEAR(values.deviation(), 1.118034, 1e-6);
  EXPECT_EQ(Distribution({}).quantile(0.5), 0);
}

TEST(LoadSummary, HasVllmsKeysAndFigures) {
  const Json json = Json::parse(summary_json(small_summary()));
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["failed"], 2);
  EXPECT_EQ(json["total_input_tokens"], 20);
  EXPECT_EQ(json["total_output_tokens"], 8);
  EXPECT_DOUBLE_EQ(json["request_throughput"], 0.25);
  EXPECT_DOUBLE_EQ(json["output_throughput"], 1);
  EXPECT_DOUBLE_EQ(json["total_token_throughput"], 3.5);
  EXPECT_DOUBLE_EQ(json["mean_ttft_ms"], 1500);
  EXPECT_DOUBLE_EQ(json["mean_tpot_ms"], 1000);  // 2 s over 2 tokens, 4 s over 4
  EXPECT_DOUBLE_EQ(json["median_itl_ms"], 1500);
  EXPECT_DOUBLE_EQ(json["p90_e2el_ms"], 5700);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["failures"]["refused"], 1);
  EXPECT_EQ(json["failures"]["refused_with_retry_after"], 1);
  EXPECT_EQ(json["failures"]["broken"], 1);
  EXPECT_EQ(json["timeline"].size(), 6u);
  EXPECT_FALSE(json.contains("memory"));
}

TEST(LoadSummary, TheTableHasWhatVllmPrints) {
  const std::string table = summary_table(small_summary());
  for (const char* part : {"Serving Benchmark Result", "Successful requests:                     2", "Mean TTFT (ms):",
                           "P99 ITL (ms):", "Median TPOT (ms):", "P90 E2EL (ms):                           5700.00",
                           "Output token throughput (tok/s):", "Refused (503, 429)", "of these with Retry-After",
                           "Broken streams", "1 x refused 503: too <many> wait"})
    EXPECT_THAT(table, HasSubstr(part));
  EXPECT_EQ(table.find("Timeouts"), std::string::npos);
}

TEST(LoadSummary, ThePageIsWellFormedAndNeedsNothing) {
  LoadResult empty;
  for (const LoadSummary& summary : {small_summary(), summarise({}, empty, nullptr)}) {
    const std::string page = summary_page(summary);
    EXPECT_EQ(report::malformed(page), "");
    for (const char* part : {"<script", "https://", "url(", "@import", "<link", "<img", "<iframe"})
      EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  const std::string page = summary_page(small_summary());
  EXPECT_THAT(page, HasSubstr("a &amp; &lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("too &lt;many&gt; wait"));
  EXPECT_THAT(page, HasSubstr("Pieces of text a second"));
}

TEST(LoadSummary, CountsPiecesWhereTheServerDoesNotCount) {
  LoadResult result = small_result();
  result.records[0].output_tokens = -1;
  const LoadSummary summary = summarise({}, result, nullptr);
  EXPECT_EQ(summary.output_tokens, 8);
  EXPECT_FALSE(summary.counted);
  EXPECT_THAT(summary_table(summary), HasSubstr("pieces of text are counted"));
}

}  // namespace
}  // namespace headroom::bench
