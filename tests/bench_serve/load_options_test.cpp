// Addresses, arrivals and requests made from options, and refused options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "bench_serve/arrivals.h"
#include "bench_serve/load_options.h"
#include "bench_serve/memory_watch.h"
#include "bench_serve/request_source.h"
#include "bench_serve/server_address.h"
#include "formats/json.h"

namespace headroom::bench {
namespace {

using ::testing::HasSubstr;

// The message and the remedy that a call throws; empty if it does not throw.
template <typename Call>
std::string refused(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_FALSE(error.remedy().empty()) << error.what();
    return std::string(error.what()) + " | " + error.remedy();
  }
  return {};
}

TEST(ServerAddress, ReadsHostsPortsAndPrefixes) {
  for (const char* url : {"http://a:8000", "http://a:8000/", "http://a:8000/v1", "http://a:8000/v1/", "a:8000"}) {
    const ServerAddress address = parse_address(url);
    EXPECT_EQ(address.authority() + address.prefix, "a:8000") << url;
  }
  EXPECT_EQ(parse_address("http://[::1]:90/x/v1").authority(), "[::1]:90");
  EXPECT_EQ(parse_address("http://[::1]:90/x/v1").prefix, "/x");
  EXPECT_EQ(parse_address("http://host").port, "80");
}

TEST(ServerAddress, RefusesWhatItCannotReach) {
  EXPECT_THAT(refused([] { parse_address("https://api.example.com/v1"); }), HasSubstr("local port of a TLS proxy"));
  for (const char* url : {"ftp://a", "http://", "http://a:0", "http://a:70000", "http://a:x", "http://[::1",
                          "http://a b", "http://a?x", "http://u:p@a", "http://a\r\nX: y"})
    EXPECT_NE(refused([&] { parse_address(url); }), "") << url;
}

TEST(Arrivals, HaveTheRateAndAreTheSameForASeed) {
  for (const double burstiness : {0.3, 1.0, 5.0}) {
    Arrivals first(20, burstiness, 7), second(20, burstiness, 7), other(20, burstiness, 8);
    double sum = 0, squares = 0, different = 0;
    constexpr int kCount = 40000;
    for (int i = 0; i < kCount; ++i) {
      const double gap = first.next_gap();
      ASSERT_EQ(gap, second.next_gap());
      different += gap != other.next_gap();
      sum += gap;
      squares += gap * gap;
    }
    const double mean = sum / kCount, variance = squares / kCount - mean * mean;
    EXPECT_NEAR(mean, 0.05, 0.002);
    EXPECT_NEAR(variance / (mean * mean), 1 / burstiness, 0.1 / burstiness);  // for a gamma distribution
    EXPECT_GT(different, kCount / 2);
  }
  EXPECT_EQ(Arrivals(std::numeric_limits<double>::infinity(), 1, 0).next_gap(), 0);
}

LoadOptions small_load() {
  LoadOptions options;
  options.base_url = "http://a";
  options.model = "m";
  options.random_input_len = 20;
  options.random_output_len = 10;
  options.random_range_ratio = 0.5;
  return options;
}

TEST(RandomRequests, HaveLengthsInTheRangeAndAreTheSameForASeed) {
  LoadOptions options = small_load();
  options.random_prefix_len = 3;
  const auto source = random_requests(options, {{5, 6, 7}, 1.0});
  size_t least = 1000, most = 0;
  Json first_prefix;
  for (int i = 0; i < 200; ++i) {
    const Json body = Json::parse(source->body(i));
    ASSERT_EQ(body["model"], "m");
    ASSERT_EQ(body["stream_options"]["include_usage"], true);
    const Json prompt = body["prompt"];
    least = std::min(least, prompt.size()), most = std::max(most, prompt.size());
    EXPECT_GE(body["max_tokens"], 5);
    EXPECT_LE(body["max_tokens"], 15);
    const Json prefix = {prompt[0], prompt[1], prompt[2]};
    if (i == 0) first_prefix = prefix;
    EXPECT_EQ(prefix, first_prefix);
  }
  EXPECT_EQ(least, 13u);
  EXPECT_EQ(most, 33u);
  EXPECT_EQ(random_requests(options, {{5, 6, 7}, 1.0})->body(17), source->body(17));
  EXPECT_NE(source->body(16), source->body(17));
  options.seed = 1;
  EXPECT_NE(random_requests(options, {{5, 6, 7}, 1.0})->body(17), source->body(17));
}

TEST(RandomRequests, AreTextForChatsAndWithoutATokenizer) {
  LoadOptions options = small_load();
  options.random_range_ratio = 0;
  const Json completion = Json::parse(random_requests(options, {{}, 2.0})->body(0));
  const std::string text = completion["prompt"];
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 10);
  options.endpoint = Endpoint::chat;
  const Json chat = Json::parse(random_requests(options, {{1, 2}, 2.0})->body(0));
  EXPECT_EQ(chat["messages"][0]["content"], text);
  EXPECT_FALSE(chat.contains("prompt"));
}

class FileRequestsTest : public ::testing::Test {
 protected:
  ~FileRequestsTest() override { std::filesystem::remove(path_); }
  std::unique_ptr<RequestSource> source(const std::string& text, Endpoint endpoint) {
    std::ofstream(path_) << text;
    LoadOptions options = small_load();
    options.dataset = path_;
    options.endpoint = endpoint;
    return file_requests(options);
  }
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("headroom-load-" + std::to_string(::getpid()) + ".jsonl");
};

TEST_F(FileRequestsTest, SendWhatTheLinesHoldInTurn) {
  const auto lines = source(
      "{\"prompt\":\"a\",\"max_tokens\":3,\"top_k\":4}\n\n{\"prompt\":[1,2],\"output_tokens\":9,\"stream\":false}\r\n",
      Endpoint::completions);
  const Json first = Json::parse(lines->body(0)), second = Json::parse(lines->body(1));
  EXPECT_EQ(first["prompt"], "a");
  EXPECT_EQ(first["max_tokens"], 3);
  EXPECT_EQ(first["top_k"], 4);
  EXPECT_EQ(second["max_tokens"], 9);
  EXPECT_EQ(second["stream"], true);
  EXPECT_FALSE(second.contains("output_tokens"));
  EXPECT_EQ(lines->body(2), lines->body(0));
  const Json chat = Json::parse(source("{\"prompt\":\"a\"}", Endpoint::chat)->body(0));
  EXPECT_EQ(chat["messages"][0]["content"], "a");
  EXPECT_EQ(chat["max_tokens"], 10);
}

TEST_F(FileRequestsTest, RefusalsNameTheLine) {
  const auto why = [&](const std::string& text) { return refused([&] { source(text, Endpoint::completions); }); };
  EXPECT_THAT(why("{\"prompt\":\"a\"}\n{\"prompt\":"), HasSubstr(".jsonl:2"));
  EXPECT_THAT(why("[]\n"), HasSubstr("not a JSON object"));
  EXPECT_THAT(why("{}\n"), HasSubstr("either prompt or messages"));
  EXPECT_THAT(why("{\"messages\":[]}\n"), HasSubstr("--endpoint chat"));
  EXPECT_THAT(why("\n"), HasSubstr("no request"));
  LoadOptions options = small_load();
  options.dataset = "absent.jsonl";
  EXPECT_THAT(refused([&] { file_requests(options); }), HasSubstr("absent.jsonl"));
}

TEST(LoadOptions, AreRefusedOutOfRange) {
  const auto why = [](auto change) {
    LoadOptions options = small_load();
    change(options);
    return refused([&] { check_load(options); });
  };
  EXPECT_EQ(why([](LoadOptions&) {}), "");
  EXPECT_THAT(why([](LoadOptions& o) { o.base_url.clear(); }), HasSubstr("--base-url"));
  EXPECT_THAT(why([](LoadOptions& o) { o.request_rate = 0; }), HasSubstr("--request-rate"));
  EXPECT_THAT(why([](LoadOptions& o) { o.request_rate = std::nan(""); }), HasSubstr("--request-rate"));
  EXPECT_THAT(why([](LoadOptions& o) { o.burstiness = 0; }), HasSubstr("--burstiness"));
  EXPECT_THAT(why([](LoadOptions& o) { o.random_range_ratio = 1; }), HasSubstr("--random-range-ratio"));
  EXPECT_THAT(why([](LoadOptions& o) { o.num_prompts = 0; }), HasSubstr("--num-prompts"));
  EXPECT_THAT(why([](LoadOptions& o) { o.num_prompts = 0, o.duration = 5; }), HasSubstr("without an end"));
  EXPECT_EQ(why([](LoadOptions& o) { o.num_prompts = 0, o.duration = 5, o.request_rate = 3; }), "");
}

TEST(MemoryWatch, ReadsThisProcess) {
  MemoryWatch watch = MemoryWatch::of_process(::getpid());
  std::vector<char> block(64 << 20, 1);
  const int64_t now = watch.sample();
  EXPECT_GT(now, 64 << 20);
  EXPECT_GE(watch.peak(), now - (8 << 20));
  EXPECT_FALSE(watch.kills());
  EXPECT_EQ(block[12345], 1);
  EXPECT_THAT(refused([] { MemoryWatch::of_process(999999999); }), HasSubstr("999999999"));
}

TEST(MemoryWatch, ReadsBothKindsOfCgroups) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("headroom-group-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto write = [&](const char* name, const char* text) { std::ofstream(folder / name) << text; };
  EXPECT_THAT(refused([&] { MemoryWatch::of_cgroup(folder); }), HasSubstr("memory.current"));
  write("memory.usage_in_bytes", "500\n");
  write("memory.max_usage_in_bytes", "900\n");
  MemoryWatch first = MemoryWatch::of_cgroup(folder);
  EXPECT_EQ(first.sample(), 500);
  EXPECT_EQ(first.peak(), 900);
  write("memory.current", "100\n");
  write("memory.events", "low 0\nhigh 3\nmax 2\noom 1\noom_kill 1\n");
  MemoryWatch second = MemoryWatch::of_cgroup(folder);  // a kernel without memory.peak
  write("memory.current", "700\n");
  EXPECT_EQ(second.sample(), 700);
  write("memory.current", "50\n");
  write("memory.events", "oom 3\noom_kill 3\n");
  EXPECT_EQ(second.sample(), 50);
  EXPECT_EQ(second.peak(), 700);
  EXPECT_EQ(second.kills(), 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headroom::bench
