// An HTTP/1.1 server on one thread: connections with caps and time limits, whole answers and server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "serve/http_exchange.h"
#include "serve/http_origins.h"

namespace headroom {

// Every cap that bounds what the server holds. Bytes and seconds.
struct HttpLimits {
  int64_t connections = 128;                 // served at once; each one more is answered 503 and closed
  int64_t header_bytes = 16 << 10;           // of one request; 431 beyond
  int64_t body_bytes = int64_t{1} << 20;     // of one request; 413 beyond
  int64_t bodies_bytes = int64_t{4} << 20;   // of all requests at once; 503 with Retry-After beyond
  int64_t event_bytes = 64 << 10;            // waiting to be read by one slow client; then it is gone
  int64_t events_bytes = int64_t{2} << 20;   // the same of all clients
  double request_seconds = 20;               // from the first byte to the whole request
  double idle_seconds = 30;                  // of a connection without a request under way
  double write_seconds = 30;                 // without a byte being taken by the client
  double ping_seconds = 5;                   // between comments of a stream that has nothing to say
  int64_t answers_bytes = int64_t{4} << 20;  // whole answers not yet taken by their clients; 503 beyond
  HttpOrigins origins;                       // of pages that may call: CORS headers, preflights are answered

  // What all connections together may hold of heap, at most; a handler's own memory is not in it.
  int64_t memory_bytes() const;
};

struct HttpAddress {
  std::string host = "127.0.0.1";
  int port = 8000;        // 0: a free one
  std::string unix_path;  // instead of host and port, where given
};

class HttpServer {
 public:
  // Binds and listens; does not accept before run(). Throws Error(run) naming the address where it is taken.
  HttpServer(const HttpAddress& address, const HttpLimits& limits, HttpHandler handler);
  ~HttpServer();

  // "http://127.0.0.1:41873".
  std::string url() const;
  // Serves on the calling thread until stop(), or until drain() has ended.
  void run();
  // From any thread: closes the listener and idle connections, lets those with an answer under way finish, then ends
  // run(), at the latest after `seconds`.
  void drain(double seconds);
  // From any thread: ends run() at once.
  void stop();
  int64_t open_connections() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
