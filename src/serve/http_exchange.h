// One HTTP request and its answer, as the API sees them: no socket, no HTTP library.
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
  std::string method;                                        // "GET", also of HEAD: the server leaves out the body
  std::string path;                                          // "/v1/models", percent-decoded, without the query
  std::string query;                                         // as sent
  std::string body;                                          // whole
  std::string client;                                        // the peer's address, for the log and for fairness
  std::string request_id;                                    // X-Request-Id, or one that was made
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  // The first header of that name (lower case); empty where there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return {};
  }
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Held by shared_ptr as long as somebody may answer. request() may be read by any thread; all other members are called
// from any thread too, and take effect on the server's own in the order of the calls. What is sent after the client has
// left is dropped.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  // The whole answer. Once, and not with a stream.
  virtual void send(int status, std::string content_type, std::string body, HttpHeaders headers = {}) = 0;
  // Server-sent events: status 200, then each piece of text as given ("data: {...}\n\n"), then the end. Comments keep
  // the connection alive while nothing is sent. The last events may be as large as a whole answer; all others have the
  // small buffer of a stream.
  virtual void begin_events(HttpHeaders headers = {}) = 0;
  virtual void event(std::string text) = 0;
  virtual void end_events(std::string last = {}) = 0;
  // Called once, on the server's thread, when the client has left, or reads so slowly that its buffer is full, before
  // the answer was complete; at once where that has happened already. It is let go when the answer is complete; until
  // then it must not own the exchange, whose end without an answer is 500.
  virtual void on_gone(std::function<void()> call) = 0;
};

// Called on the server's thread for each whole request; returns soon.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

}  // namespace headroom
