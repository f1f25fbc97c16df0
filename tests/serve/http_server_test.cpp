#include "serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/error.h"
#include "raw_client.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

HttpAddress on_port(int port) {
  HttpAddress address;
  address.port = port;
  return address;
}

HttpAddress on_path(const std::string& path) {
  HttpAddress address;
  address.unix_path = path;
  return address;
}

// Echoes the request; /hold leaves the exchange to the test, /events sends three events.
class HttpServerTest : public ::testing::Test {
 protected:
  void start(const HttpAddress& address = on_port(0)) {
    server_ = std::make_unique<HttpServer>(
        address, limits_, [this](std::shared_ptr<HttpExchange> exchange) { answer(std::move(exchange)); });
    const std::string url = server_->url();
    port_ = std::atoi(url.c_str() + url.rfind(':') + 1);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~HttpServerTest() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  void answer(std::shared_ptr<HttpExchange> exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/throw") throw std::runtime_error("handler");
    if (request.path == "/drop") return;
    if (request.path == "/hold") return held_.set_value(std::move(exchange));
    if (request.path == "/events") {
      exchange->begin_events();
      for (const char* text : {"data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"}) exchange->event(text);
      return exchange->end_events();
    }
    exchange->send(200, "text/plain", request.method + " " + request.path + " " + request.query + " " + request.body);
  }

  RawClient client() { return RawClient(port_); }
  std::string ask(std::string_view bytes) {
    RawClient one(port_);
    one.send(bytes);
    return one.read_all();
  }
  std::shared_ptr<HttpExchange> held() { return held_.get_future().get(); }
  // The exchange of a request that the handler leaves to the test.
  std::shared_ptr<HttpExchange> ask_to_hold(RawClient& client) {
    client.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    return held();
  }

  HttpLimits limits_;
  std::unique_ptr<HttpServer> server_;
  std::promise<std::shared_ptr<HttpExchange>> held_;
  std::thread thread_;
  int port_ = 0;
};

constexpr const char* kHost = "Host: x\r\n";

TEST_F(HttpServerTest, KeepsAConnectionAndTakesPipelinedRequests) {
  start();
  RawClient one = client();
  one.send("GET /a?q=1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /b%20c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxyz");
  EXPECT_THAT(one.read_until("GET /a q=1 "), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(one.read_until("POST /b c  xyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  one.send("GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(one.read_all(), HasSubstr("Connection: close\r\n"));
}

TEST_F(HttpServerTest, TakesChunkedBodiesAndSays100Continue) {
  start();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"),
              HasSubstr("POST /  abcde"));
  RawClient one = client();
  one.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(one.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  one.send("hi");
  EXPECT_THAT(one.read_until("hi"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  start();
  const std::string answer = ask("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, AnswersPreflightsWhereOriginsAreAllowed) {
  limits_.origins.any = true;
  start();
  const std::string answer =
      ask("OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: http://a\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Headers: Authorization"));
}

TEST_F(HttpServerTest, NamesTheOriginOfAPageThatIsListed) {
  limits_.origins = read_origins(R"(["https://a.example", "HTTPS://B.Example:443", "http://localhost:3000"])");
  limits_.body_bytes = 100;
  start();
  const auto answer = [&](const std::string& method, const std::string& origin, const std::string& more = {}) {
    return ask(method + " /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
               (origin.empty() ? "" : "Origin: " + origin + "\r\n") + more + "\r\n");
  };
  const auto allows = [](const std::string& origin) {
    return ::testing::AllOf(HasSubstr("Access-Control-Allow-Origin: " + origin + "\r\n"),
                            HasSubstr("Vary: Origin\r\n"));
  };
  for (const char* origin : {"https://a.example", "https://b.example", "http://localhost:3000"}) {
    EXPECT_THAT(answer("GET", origin), ::testing::AllOf(StartsWith("HTTP/1.1 200"), allows(origin)));
    EXPECT_THAT(answer("OPTIONS", origin), ::testing::AllOf(StartsWith("HTTP/1.1 204"), allows(origin),
                                                            HasSubstr("Access-Control-Allow-Methods: ")));
    // The page can also read a refusal.
    EXPECT_THAT(answer("POST", origin, "Content-Length: 101\r\n"),
                ::testing::AllOf(StartsWith("HTTP/1.1 413"), allows(origin)));
  }
  for (const char* origin : {"", "https://c.example", "http://a.example", "https://a.example:8443", "null", "*"}) {
    const std::string other = answer("GET", origin);
    EXPECT_THAT(other, ::testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Vary: Origin\r\n")));
    EXPECT_EQ(other.find("Access-Control"), std::string::npos) << other;
  }
  EXPECT_THAT(answer("OPTIONS", "https://c.example"),
              ::testing::AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("origin_not_allowed")));
  EXPECT_THAT(answer("OPTIONS", ""), HasSubstr("OPTIONS /v1/models"));  // like any other request
}

// For one connection: a request does not get the origin of the request before it.
TEST_F(HttpServerTest, AnOriginIsOfItsRequest) {
  limits_.origins.list = {"https://a.example"};
  start();
  RawClient one = client();
  one.send("GET /a HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n\r\n");
  EXPECT_THAT(one.read_until("GET /a  "), HasSubstr("Allow-Origin: https://a.example\r\n"));
  one.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(one.read_until("GET /b  ").find("Allow-Origin"), std::string::npos);
}

TEST_F(HttpServerTest, RefusesWithJson) {
  limits_.header_bytes = 2048;
  limits_.body_bytes = 1000;
  start();
  const auto head = [](const std::string& more) { return "POST / HTTP/1.1\r\nHost: x\r\n" + more + "\r\n"; };
  std::string fields;
  for (int i = 0; i < 70; ++i) fields += "a:b\r\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {head("Content-Length: 1000000000\r\n"), "413"},
      {head("Transfer-Encoding: chunked\r\n") + "fffff\r\n", "413"},
      {"GET / HTTP/1.1\r\nX-A: " + std::string(4000, 'a'), "431"},
      {head(fields), "431"},
      {"hello\r\n", "400"},
      {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505"},
      {head("Expect: more\r\n"), "417"},
      {head("Transfer-Encoding: gzip\r\n"), "501"},
      {head("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), "400"},
      {head("Content-Length: 3\r\nContent-Length: 4\r\n"), "400"},
  };
  for (const auto& [bytes, status] : cases) {
    const std::string answer = ask(bytes);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + status)) << bytes.substr(0, 80);
    EXPECT_THAT(answer, HasSubstr("{\"error\":{\"message\":\""));
    EXPECT_THAT(answer, HasSubstr("\"type\":\"")) << answer;
    EXPECT_THAT(answer, HasSubstr("\"code\":\"")) << answer;
  }
}

TEST_F(HttpServerTest, CutsAnEndlessBody) {
  limits_.body_bytes = 1 << 20;
  start();
  RawClient one = client();
  one.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1 << 20, ' ') + "\r\n";
  int sent = 0;
  while (sent < 80 && one.send(chunk)) ++sent;
  EXPECT_LT(sent, 80);
}

TEST_F(HttpServerTest, ClosesATlsHello) {
  start();
  EXPECT_EQ(ask(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)), "");
}

TEST_F(HttpServerTest, EchoesOrMakesRequestIds) {
  start();
  const auto with = [&](const std::string& id) {
    return ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: " + id + "\r\n\r\n");
  };
  EXPECT_THAT(with("accept-7"), HasSubstr("X-Request-Id: accept-7\r\n"));
  EXPECT_THAT(with("a<b>"), HasSubstr("X-Request-Id: req-"));
  EXPECT_THAT(with(std::string(129, 'a')), HasSubstr("X-Request-Id: req-"));
}

TEST_F(HttpServerTest, SendsEvents) {
  start();
  RawClient one = client();
  for (int i = 0; i < 2; ++i) {
    one.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = one.read_until("0\r\n\r\n");
    EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_THAT(answer, HasSubstr("data: 1\n\ndata: 2\n\ndata: [DONE]\n\n"));
  }
  const std::string old = ask("GET /events HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(old.ends_with("\r\n\r\ndata: 1\n\ndata: 2\n\ndata: [DONE]\n\n")) << old;
}

TEST_F(HttpServerTest, PingsASilentStream) {
  limits_.ping_seconds = 0.05;
  start();
  RawClient one = client();
  const auto exchange = ask_to_hold(one);
  exchange->begin_events();
  EXPECT_THAT(one.read_until(": ping\n\n"), HasSubstr(": ping"));
  exchange->event("data: x\n\n");
  exchange->end_events();
  EXPECT_THAT(one.read_until("0\r\n\r\n"), HasSubstr("data: x\n\n"));
}

TEST_F(HttpServerTest, SaysThatTheClientHasLeft) {
  start();
  RawClient one = client();
  const auto exchange = ask_to_hold(one);
  std::promise<void> gone;
  std::atomic<int> calls = 0;
  exchange->on_gone([&] {
    if (++calls == 1) gone.set_value();
  });
  exchange->begin_events();
  one.reset();
  gone.get_future().get();
  exchange->event("data: nobody reads this\n\n");
  exchange->end_events();
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpServerTest, DropsAClientThatReadsNothing) {
  limits_.event_bytes = 4096;
  start();
  RawClient one = client();
  const auto exchange = ask_to_hold(one);
  std::promise<void> gone;
  exchange->on_gone([&] { gone.set_value(); });
  exchange->begin_events();
  auto left = gone.get_future();
  while (left.wait_for(std::chrono::microseconds(1)) != std::future_status::ready)
    exchange->event(std::string(1000, 'x'));
}

// A large text may come at the end of a stream whose events have a small buffer, within the limit of answers.
TEST_F(HttpServerTest, TheLastEventsMayBeAsLargeAsAnAnswer) {
  limits_.event_bytes = 4096;
  limits_.answers_bytes = 64 << 10;
  start();
  RawClient one = client();
  const auto exchange = ask_to_hold(one);
  exchange->begin_events();
  exchange->event("data: x\n\n");
  exchange->end_events(std::string(30000, 'a') + "end\n\n");
  const std::string all = one.read_until("\r\n0\r\n\r\n");
  EXPECT_THAT(all, HasSubstr("data: x\n\n"));
  EXPECT_THAT(all, HasSubstr("aaaaend\n\n\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, LastEventsBeyondTheBudgetOfAnswersEndTheConnection) {
  limits_.event_bytes = 4096;
  limits_.answers_bytes = 32 << 10;
  start();
  RawClient one = client();
  const auto exchange = ask_to_hold(one);
  std::promise<void> gone;
  exchange->on_gone([&] { gone.set_value(); });
  exchange->begin_events();
  exchange->end_events(std::string(30000, 'a'));
  gone.get_future().get();
  EXPECT_THAT(one.read_all(), testing::Not(HasSubstr("\r\n0\r\n\r\n")));
}

TEST_F(HttpServerTest, AnswersForHandlersThatDoNot) {
  start();
  for (const char* path : {"/throw", "/drop"})
    EXPECT_THAT(ask(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                StartsWith("HTTP/1.1 500"));
}

TEST_F(HttpServerTest, ClosesSlowAndIdleClients) {
  limits_.request_seconds = limits_.idle_seconds = 0.2;
  start();
  for (const char* bytes : {"", "GET /hea", "GET / HTTP/1.1\r\nHost: x\r\n",
                            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nab"}) {
    RawClient one = client();
    one.send(bytes);
    EXPECT_TRUE(one.is_closed()) << bytes;
  }
  RawClient trickling = client();
  trickling.send("GET / HTTP/1.1\r\nX-A: ");
  while (trickling.send("a")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST_F(HttpServerTest, TurnsAwayConnectionsAndBodiesBeyondTheCaps) {
  limits_.connections = 2;
  limits_.bodies_bytes = 1000;
  start();
  RawClient first = client();
  first.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 900\r\n\r\n");
  first.read_until("\r\n\r\n");  // its body is booked
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: "), HasSubstr("bodies_full")));
  while (server_->open_connections() > 1) std::this_thread::yield();
  RawClient second = client();
  second.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  second.read_until("GET /  ");
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: "), HasSubstr("connections_full")));
}

// Any number of connections: each gets a refusal, and none occupies a place that another one has freed.
TEST_F(HttpServerTest, AnswersEveryConnectionBeyondTheCap) {
  limits_.connections = 2;
  start();
  const std::string_view request = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  RawClient first = client();
  std::optional<RawClient> second(client());
  for (RawClient* const served : {&first, &*second}) {
    served->send(request);
    served->read_until("GET /a  ");
  }
  std::vector<RawClient> others;
  for (int i = 0; i < 300; ++i) {
    others.push_back(client());
    if (i % 2) others.back().send(request);
  }
  for (size_t i = 0; i + 1 < others.size(); ++i) {
    EXPECT_THAT(others[i].read_until("}}"),
                ::testing::AllOf(
                    StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1\r\n"), HasSubstr("Connection: close\r\n"),
                    HasSubstr("{\"error\":{\"message\":\"2 connections"), HasSubstr("\"code\":\"connections_full\"")))
        << i;
  }
  while (server_->open_connections() > 66) std::this_thread::yield();
  EXPECT_TRUE(others[0].is_closed());
  second.reset();
  std::string answer;
  for (int i = 0; i < 1000 && answer.find("200 OK") == std::string::npos; ++i) {
    RawClient next = client();
    next.send(request);
    answer = next.read_until("\r\n\r\n");
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
}

// A client that sends a long body before it reads gets the answer, not a reset connection.
TEST_F(HttpServerTest, AClientBeyondTheCapMaySendItsBodyFirst) {
  limits_.connections = 1;
  start();
  RawClient first = client();
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("GET /a  ");
  RawClient second = client();
  EXPECT_TRUE(second.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6000000\r\n\r\n" + std::string(6000000, 'b')));
  EXPECT_THAT(second.read_all(), ::testing::AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("connections_full")));
}

TEST_F(HttpServerTest, DrainsToTheEndOfRunningAnswers) {
  start();
  RawClient idle = client(), running = client();
  const auto exchange = ask_to_hold(running);
  server_->drain(20);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_FALSE(RawClient(port_).connected());
  exchange->send(200, "text/plain", "late");
  EXPECT_THAT(running.read_all(), ::testing::EndsWith("late"));
  thread_.join();
}

TEST_F(HttpServerTest, ServesASocketFileOfItsOwnOnly) {
  const std::string path = (std::filesystem::temp_directory_path() / ("hr" + std::to_string(::getpid()))).string();
  start(on_path(path));
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  EXPECT_THROW(HttpServer(on_path(path), {}, {}), Error);
  server_->stop();
  thread_.join();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HttpServerTest, NamesThePortThatIsTaken) {
  start();
  try {
    HttpServer second(on_port(port_), {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::run);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(port_)));
  }
}

TEST_F(HttpServerTest, LivesThroughRandomBytes) {
  limits_.request_seconds = limits_.idle_seconds = 0.1;
  start();
  std::mt19937 random(5);
  const std::string pieces[] = {"GET / HTTP/1.1\r\n",
                                "POST /hold",
                                kHost,
                                "\r\n",
                                "\r\n\r\n",
                                "Content-Length: 5\r\n",
                                "Transfer-Encoding: chunked\r\n",
                                "5\r\n",
                                "0\r\n\r\n",
                                "abcde",
                                "\n",
                                std::string(1, '\0')};
  for (int i = 0; i < 200; ++i) {
    std::string bytes;
    for (int k = 0; k < 12; ++k)
      bytes += random() % 4 ? pieces[random() % std::size(pieces) % 12]
                            : std::string(random() % 9, static_cast<char>(random()));
    if (bytes.find("/hold") != std::string::npos) continue;
    RawClient one = client();
    one.send(bytes);
    if (i % 2) one.reset();
  }
  EXPECT_THAT(ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), HasSubstr("GET /a"));
}

}  // namespace
}  // namespace headroom
