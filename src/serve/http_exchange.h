// One HTTP request and its answer as the API uses them, without sockets or an HTTP library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

struct HttpRequest {
  std::string method;                                        // "GET" also for HEAD: the server then leaves out the body
  std::string path;                                          // "/v1/models", percent-decoded, without the query
  std::string query;                                         // as sent
  std::string body;                                          // the whole body
  std::string client;                                        // the peer's address, for the log and for fairness
  std::string request_id;                                    // X-Request-Id, or a generated one
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  // The first header with that name (lower case), else empty.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return {};
  }
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Kept by shared_ptr as long as an answer is possible. All members may be called from any thread. request() only reads;
// the others take effect on the server's thread in the order of the calls. Text sent after the client has left is
// dropped.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  // Sends the whole answer. Call once, and not together with a stream.
  virtual void send(int status, std::string content_type, std::string body, HttpHeaders headers = {}) = 0;
  // Server-sent events: status 200, then each text as given ("data: {...}\n\n"), then the end. Comments keep the
  // connection alive while nothing is sent. The last events may be as large as a whole answer; all others share the
  // small buffer of a stream.
  virtual void begin_events(HttpHeaders headers = {}) = 0;
  virtual void event(std::string text) = 0;
  virtual void end_events(std::string last = {}) = 0;
  // `call` is called once, on the server's thread, if the client leaves before the answer is complete, or reads so
  // slowly that its buffer is full; immediately if that has already happened. It is released when the answer is
  // complete. Until then it must not own the exchange, which answers 500 when it is destroyed without an answer.
  virtual void on_gone(std::function<void()> call) = 0;
};

// Called on the server's thread for each complete request; must return soon.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

}  // namespace headroom
