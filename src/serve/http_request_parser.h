// Parses one HTTP request from bytes, without a socket: first the whole head, then the body as it arrives. Memory for a
// body is taken from a budget before it is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/byte_budget.h"
#include "serve/http_exchange.h"

namespace headroom {

// Why the server itself refuses a request.
struct HttpRefusal {
  int status = 400;
  std::string code;
  std::string message;
};

class HttpRequestParser {
 public:
  static constexpr size_t kMostFields = 64;

  // body_bytes: the longest body accepted. `bodies`: shared by all requests.
  HttpRequestParser(int64_t body_bytes, std::shared_ptr<ByteBudget> bodies);
  ~HttpRequestParser();

  // `bytes` ends with the empty line of the head. Call once, before read_body().
  void read_head(std::string_view bytes);
  // Reads body bytes from the front. Bytes that it leaves must be given again with more after them.
  size_t read_body(std::string_view bytes);

  bool complete() const;
  const std::optional<HttpRefusal>& refusal() const;
  // Call after read_head(), if it did not refuse.
  bool keep_alive() const;
  bool http_1_0() const;
  bool wants_continue() const;  // Expect: 100-continue
  // The first header with that name (lower case), else empty. Valid after read_head() and until take_request().
  std::string_view header(std::string_view name) const;
  // Bytes of the body that are still to come; nullopt for a chunked body.
  std::optional<int64_t> remaining() const;
  // The complete request, without client and request_id, and the body's share of the budget.
  HttpRequest take_request();
  HeldBytes take_held();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
