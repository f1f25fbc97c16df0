// Arbitrary bytes from a client, in pieces: a session answers, refuses or closes, and stays within its limits. The
// first byte determines how the rest is cut.
#include <cstdint>
#include <memory>
#include <string_view>

#include "serve/http_session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  if (size == 0) return 0;
  HttpLimits limits;
  limits.header_bytes = 1024;
  limits.body_bytes = 512;
  const HttpHandler handler = [](std::shared_ptr<HttpExchange> exchange) {
    if (exchange->request().path != "/events")
      return exchange->send(200, "text/plain", exchange->request().body, {{"X-Path", exchange->request().path}});
    exchange->begin_events();
    exchange->event("data: " + exchange->request().query + "\n\n");
    exchange->end_events();
  };
  const HttpWaker waker{[] {}, [](std::function<void()> call) { call(); }};
  HttpSession::Time now{};
  HttpSession session(std::make_shared<HttpShared>(limits), waker, &handler, "fuzz", "req", now);
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] + size_t{1};
  while (!bytes.empty() && !session.closed()) {
    const size_t some = std::min({piece, bytes.size(), static_cast<size_t>(session.wanted())});
    if (some == 0) break;
    session.received(bytes.substr(0, some), now);
    bytes.remove_prefix(some);
    while (session.has_output()) session.sent(1 + session.output()[0].size() / 2 % 3, now);
    session.tick(now += std::chrono::milliseconds(1));
  }
  session.left();
  return 0;
}
