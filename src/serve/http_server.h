// An HTTP/1.1 server on one thread: connections with limits on memory and time, whole answers and server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "serve/http_exchange.h"
#include "serve/http_origins.h"

namespace headroom {

// All limits on what the server holds, in bytes and seconds.
struct HttpLimits {
  int64_t connections = 128;                 // served at once; each further one gets 503 and is closed
  int64_t header_bytes = 16 << 10;           // per request; 431 if exceeded
  int64_t body_bytes = int64_t{1} << 20;     // per request; 413 if exceeded
  int64_t bodies_bytes = int64_t{4} << 20;   // of all requests at once; 503 with Retry-After if exceeded
  int64_t event_bytes = 64 << 10;            // unread by one slow client; if exceeded, its stream is closed
  int64_t events_bytes = int64_t{2} << 20;   // the same for all clients together
  double request_seconds = 20;               // from a request's first byte to its last
  double idle_seconds = 30;                  // for a connection without a request
  double write_seconds = 30;                 // while the client reads nothing
  double ping_seconds = 5;                   // between comments of a stream without events
  int64_t answers_bytes = int64_t{4} << 20;  // whole answers not yet read by their clients; 503 if exceeded
  HttpOrigins origins;                       // of pages that may call: CORS headers, and answers to preflights

  // The most heap that all connections together hold, without the handler's own memory.
  int64_t memory_bytes() const;
};

struct HttpAddress {
  std::string host = "127.0.0.1";
  int port = 8000;        // 0: a free one
  std::string unix_path;  // instead of host and port, if not empty
};

class HttpServer {
 public:
  // Binds and listens; accepts only in run(). Throws Error(run) with the address when it is in use.
  HttpServer(const HttpAddress& address, const HttpLimits& limits, HttpHandler handler);
  ~HttpServer();

  // "http://127.0.0.1:41873".
  std::string url() const;
  // Serves on the calling thread until stop(), or until drain() is done.
  void run();
  // From any thread: closes the listener and idle connections, lets answers in progress finish, then ends run(), after
  // `seconds` at the latest.
  void drain(double seconds);
  // From any thread: ends run() immediately.
  void stop();
  int64_t open_connections() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
