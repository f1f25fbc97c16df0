// Loads against a server with scripted answers: measured values, and kinds of failures.
#include "bench_serve/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "bench_serve/load_summary.h"
#include "formats/json.h"
#include "serve/http_server.h"

namespace headroom::bench {
namespace {

using ::testing::HasSubstr;
using Exchange = std::shared_ptr<HttpExchange>;

std::string chunk(const char* text, const char* reason = nullptr) {
  Json choice = {{"index", 0}, {"text", text}, {"finish_reason", reason ? Json(reason) : Json()}};
  return "data: " + Json{{"choices", {choice}}}.dump() + "\n\n";
}
const std::string kUsage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n";
constexpr const char* kDone = "data: [DONE]\n\n";

void complete(const Exchange& exchange) {
  exchange->begin_events();
  for (const char* text : {"a", "b", "c"}) exchange->event(chunk(text));
  exchange->event(chunk("", "stop") + kUsage + kDone);
  exchange->end_events();
}

// Answers request I with script I, and requests beyond the last script with that one.
class ScriptedServer {
 public:
  using Script = std::function<void(const Exchange&)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : scripts_(std::move(scripts)), server_(address(), {}, [this](Exchange exchange) { answer(exchange); }) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~ScriptedServer() { stop(); }
  // Afterwards, what its scripts have written may be read.
  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  std::string url() const { return server_.url(); }
  int64_t asked() const { return asked_; }
  std::string last_body() const { return body_; }

 private:
  static HttpAddress address() {
    HttpAddress any;
    any.port = 0;
    return any;
  }
  void answer(const Exchange& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/v1/models")
      return exchange->send(200, "application/json", R"({"object":"list","data":[{"id":"some-model"}]})");
    if (request.path == "/tokenize") return exchange->send(200, "application/json", R"({"tokens":[1,2,3],"count":3})");
    body_ = request.body;
    const size_t index = static_cast<size_t>(asked_++);
    scripts_[std::min(index, scripts_.size() - 1)](exchange);
  }

  std::vector<Script> scripts_;
  std::string body_;
  std::atomic<int64_t> asked_{0};
  HttpServer server_;
  std::thread thread_;
};

LoadOptions load_of(const std::string& url, int64_t requests) {
  LoadOptions options;
  options.base_url = url;
  options.model = "m";
  options.num_prompts = requests;
  options.timeout = 20;
  options.random_input_len = 5;
  return options;
}

LoadResult run(const LoadOptions& options, const LoadHooks& hooks = {}) {
  HttpCalls calls(parse_address(options.base_url));
  const auto source = random_requests(options, {});
  return run_load(calls, options, *source, hooks);
}

TEST(LoadRun, MeasuresCompletedRequests) {
  ScriptedServer server({complete});
  const LoadOptions options = load_of(server.url(), 20);
  const LoadResult result = run(options);
  ASSERT_EQ(result.records.size(), 20u);
  for (const RequestRecord& record : result.records) {
    ASSERT_EQ(record.outcome, Outcome::completed) << record.message;
    EXPECT_EQ(record.input_tokens, 7);
    EXPECT_EQ(record.tokens(), 3);
    EXPECT_EQ(record.pieces, 3);
    EXPECT_EQ(record.gaps.size(), 2u);
    EXPECT_LE(record.begun, record.first);
    EXPECT_LE(record.first, record.last);
    EXPECT_LE(record.last, record.ended);
  }
  const LoadSummary summary = summarise(options, result, nullptr);
  EXPECT_EQ(summary.completed(), 20);
  EXPECT_EQ(summary.output_tokens, 60);
  EXPECT_EQ(summary.input_tokens, 140);
  EXPECT_TRUE(summary.counted);
}

TEST(LoadRun, WaitsForASlowServerBetweenPieces) {
  std::vector<std::thread> makers;
  ScriptedServer server({[&](const Exchange& exchange) {
    makers.emplace_back([exchange] {
      exchange->begin_events();
      for (const char* text : {"a", "b"}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        exchange->event(chunk(text));
      }
      exchange->event(kDone);
      exchange->end_events();
    });
  }});
  const LoadResult result = run(load_of(server.url(), 1));
  server.stop();
  for (std::thread& maker : makers) maker.join();
  ASSERT_EQ(result.records.at(0).outcome, Outcome::completed);
  EXPECT_GE(result.records[0].first - result.records[0].begun, 0.06);
  EXPECT_GE(result.records[0].ended - result.records[0].begun, 0.12);
  EXPECT_EQ(result.records[0].output_tokens, -1);  // without usage, pieces are counted
  EXPECT_EQ(result.records[0].tokens(), 2);
}

TEST(LoadRun, TellsFailuresApart) {
  const auto error = [](int status, const char* message, HttpHeaders headers = {}) {
    return [=](const Exchange& exchange) {
      exchange->send(status, "application/json", Json{{"error", {{"message", message}}}}.dump(), headers);
    };
  };
  const auto events = [](const std::string& text) {
    return [text](const Exchange& exchange) {
      exchange->begin_events();
      exchange->event(text);
      exchange->end_events();
    };
  };
  std::vector<std::thread> makers;
  const auto dropped = [&](const Exchange& exchange) {  // in the middle of the stream
    exchange->begin_events();
    exchange->event(chunk("a"));
    makers.emplace_back([exchange] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
  };
  const std::vector<std::tuple<ScriptedServer::Script, Outcome, std::string>> cases = {
      {error(503, "full", {{"Retry-After", "3"}}), Outcome::refused, "full"},
      {error(429, "slow down"), Outcome::refused, "slow down"},
      {error(400, "too long"), Outcome::client_error, "too long"},
      {error(500, "oops"), Outcome::server_error, "oops"},
      {events(chunk("a")), Outcome::broken, "without finish_reason"},
      {events(chunk("a") + "data: {\"error\":{\"message\":\"lost\"}}\n\n" + kDone), Outcome::broken, "lost"},
      {events("data: nonsense\n\n"), Outcome::broken, "not a JSON object"},
      {dropped, Outcome::broken, "the connection broke"},
      {error(200, "no stream"), Outcome::broken, "not an event stream"},
      {events(chunk("a", "length")), Outcome::completed, ""},
  };
  std::vector<ScriptedServer::Script> scripts;
  for (const auto& one : cases) scripts.push_back(std::get<0>(one));
  ScriptedServer server(scripts);
  LoadOptions options = load_of(server.url(), static_cast<int64_t>(cases.size()));
  options.request_rate =
      1e6;  // one after another, they would wait for Retry-After; requests arrive in the order of the scripts
  options.max_concurrency = 0;
  std::map<std::string, int64_t> expected, seen;
  const LoadResult result = run(options);
  server.stop();
  for (std::thread& maker : makers) maker.join();
  for (const auto& [script, outcome, message] : cases) ++expected[name_of(outcome)];
  for (const RequestRecord& record : result.records) ++seen[name_of(record.outcome)];
  EXPECT_EQ(seen, expected);
  const LoadSummary summary = summarise(options, result, nullptr);
  EXPECT_EQ(summary.refused_with_retry_after, 1);
  EXPECT_EQ(summary.count(Outcome::broken), 5);
  EXPECT_EQ(summary.failed(), static_cast<int64_t>(cases.size()) - 1);
  const std::string told = testing::PrintToString(summary.messages);
  for (const auto& [script, outcome, message] : cases) EXPECT_THAT(told, HasSubstr(message));
}

TEST(LoadRun, TimesOutAndFindsNoServer) {
  std::vector<Exchange> held;
  ScriptedServer server({[&](const Exchange& exchange) {
    exchange->begin_events();
    held.push_back(exchange);
  }});
  LoadOptions options = load_of(server.url(), 2);
  options.timeout = 0.2;
  const LoadResult late = run(options);
  for (const RequestRecord& record : late.records) EXPECT_EQ(record.outcome, Outcome::timed_out);
  server.stop();
  held.clear();

  int port = 0;
  {
    ScriptedServer gone({complete});
    port = std::atoi(gone.url().substr(gone.url().rfind(':') + 1).c_str());
  }
  const LoadResult none = run(load_of("http://127.0.0.1:" + std::to_string(port), 2));
  for (const RequestRecord& record : none.records) EXPECT_EQ(record.outcome, Outcome::unreachable) << record.message;
}

TEST(LoadRun, HoldsTheConcurrencyAndTheNumber) {
  std::mutex mutex;
  int64_t now = 0, most = 0;
  std::vector<std::thread> makers;
  ScriptedServer server({[&](const Exchange& exchange) {
    const std::lock_guard lock(mutex);
    most = std::max(most, ++now);
    makers.emplace_back([&, exchange] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      {
        const std::lock_guard inner(mutex);
        --now;
      }
      complete(exchange);
    });
  }});
  LoadOptions options = load_of(server.url(), 30);
  options.max_concurrency = 3;
  const LoadResult result = run(options);
  server.stop();
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(result.records.size(), 30u);
  EXPECT_EQ(server.asked(), 30);
  EXPECT_LE(most, 3);
  EXPECT_EQ(result.most_running, 3);
}

TEST(LoadRun, ARefusedRequestKeepsItsPlaceForRetryAfter) {
  ScriptedServer server({[](const Exchange& exchange) {
                           exchange->send(503, "application/json", "{}", {{"Retry-After", "1"}});
                         },
                         complete});
  LoadOptions options = load_of(server.url(), 2);
  options.max_concurrency = 1;
  const LoadResult result = run(options);
  ASSERT_EQ(result.records.size(), 2u);
  EXPECT_EQ(result.records[0].outcome, Outcome::refused);
  EXPECT_GE(result.records[1].begun - result.records[0].ended, 0.95);
}

TEST(LoadRun, ArrivesAtTheRateUntilTheDuration) {
  ScriptedServer server({complete});
  LoadOptions options = load_of(server.url(), 0);
  options.request_rate = 200;
  options.duration = 0.5;
  const LoadResult result = run(options);
  EXPECT_GE(result.records.size(), 1u);  // 100 on average
  EXPECT_LT(result.records.size(), 200u);
  for (const RequestRecord& record : result.records) EXPECT_EQ(record.outcome, Outcome::completed);
}

TEST(LoadRun, StopsWhenAsked) {
  std::vector<Exchange> held;
  ScriptedServer server({[&](const Exchange& exchange) {
    exchange->begin_events();
    exchange->event(chunk("a"));
    held.push_back(exchange);
  }});
  LoadOptions options = load_of(server.url(), 100);
  options.max_concurrency = 4;
  int samples = 0;
  LoadHooks hooks;
  hooks.should_end = [&] { return ++samples > 2; };
  const LoadResult result = run(options, hooks);
  EXPECT_TRUE(result.stopped);
  ASSERT_EQ(result.records.size(), 4u);
  for (const RequestRecord& record : result.records) EXPECT_EQ(record.outcome, Outcome::cancelled);
  EXPECT_GE(result.samples.size(), 3u);
  server.stop();
  held.clear();
}

TEST(LoadRun, AsksForTheModelAndTheTokenizer) {
  ScriptedServer server({complete});
  LoadOptions options = load_of(server.url(), 1);
  HttpCalls calls(parse_address(options.base_url + "/v1"));
  EXPECT_EQ(served_model(calls, options), "some-model");
  const WordTokens words = word_tokens(calls, options);
  EXPECT_EQ(words.ids, (std::vector<int64_t>{1, 2, 3}));
  const auto source = random_requests(options, words);
  warm_up(calls, options, *source);
  server.stop();
  EXPECT_EQ(Json::parse(server.last_body())["prompt"].size(), 5u);
}

TEST(LoadRun, AWarmUpThatFailsEndsWithWhatTheServerSaid) {
  ScriptedServer server({[](const Exchange& exchange) {
    exchange->send(404, "application/json", R"({"error":{"message":"there is no model m here"}})");
  }});
  LoadOptions options = load_of(server.url(), 1);
  HttpCalls calls(parse_address(options.base_url));
  const auto source = random_requests(options, {});
  try {
    warm_up(calls, options, *source);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("status 404, there is no model m here"));
  }
}

}  // namespace
}  // namespace headroom::bench
