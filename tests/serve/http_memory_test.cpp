// memory_bytes() against malloc's count while every connection holds as much as it can.
#include <gtest/gtest.h>
#include <malloc.h>

#include <mutex>
#include <thread>
#include <vector>

#include "../sanitized.h"
#include "raw_client.h"
#include "serve/http_server.h"

namespace headroom {
namespace {

int64_t heap_in_use() {
  const struct mallinfo2 facts = ::mallinfo2();
  return static_cast<int64_t>(facts.uordblks + facts.hblkhd);
}

// Fields of the length that malloc rounds up most, as many as the limits permit.
std::string largest_head(const HttpLimits& limits) {
  std::string head = "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n";
  const size_t each = (static_cast<size_t>(limits.header_bytes) - head.size() - 2) / 60;
  for (int i = 0; i < 60; ++i) head += "x-0123456789abcdef-" + std::string(each - 24, 'v') + ": v\r\n";
  return head + "\r\n";
}

TEST(HttpMemory, StaysBelowItsBound) {
  HttpLimits limits;
  limits.connections = 64;
  limits.event_bytes = 16 << 10;
  limits.events_bytes = 256 << 10;
  limits.bodies_bytes = 64 << 10;
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> held;
  std::vector<RawClient> clients;
  clients.reserve(200);
  held.reserve(100);
  const std::string head = largest_head(limits), unfinished = head.substr(0, head.size() - 2);
  ASSERT_LE(head.size(), static_cast<size_t>(limits.header_bytes));
  const int64_t before = heap_in_use();
  HttpServer server({"127.0.0.1", 0, ""}, limits, [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->begin_events();
    const std::lock_guard lock(mutex);
    held.push_back(std::move(exchange));
  });
  const std::string url = server.url();
  std::thread thread([&] { server.run(); });
  for (int i = 0; i < 200; ++i) {  // two thirds of them beyond the limit
    clients.emplace_back(std::atoi(url.c_str() + url.rfind(':') + 1));
    clients.back().send(i % 2 ? unfinished : head + std::string(1000, 'b'));
  }
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return held.size();
  };
  while (count() < 30 || server.open_connections() < limits.connections) std::this_thread::yield();
  std::string event(1000, 'e');
  int64_t most = 0;
  for (int round = 0; round < 2000; ++round) {
    {
      const std::lock_guard lock(mutex);
      for (const auto& exchange : held) exchange->event(event);
    }
    most = std::max(most, heap_in_use() - before);
  }
  server.stop();
  thread.join();
  RecordProperty("most", std::to_string(most));
  RecordProperty("bound", std::to_string(limits.memory_bytes()));
  if (HEADROOM_SANITIZED) return;  // another malloc, which does not count
  EXPECT_GT(most, 0);
  EXPECT_LE(most, limits.memory_bytes());
}

}  // namespace
}  // namespace headroom
