// One HTTP request out of bytes, without a socket. First the whole head, then the body as it comes; a body's memory is
// taken from a budget before it is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/byte_budget.h"
#include "serve/http_exchange.h"

namespace headroom {

// Why the server itself turns a request away.
struct HttpRefusal {
  int status = 400;
  std::string code;
  std::string message;
};

class HttpRequestParser {
 public:
  static constexpr size_t kMostFields = 64;

  // body_bytes: the longest body that is taken. `bodies`: shared by all requests.
  HttpRequestParser(int64_t body_bytes, std::shared_ptr<ByteBudget> bodies);
  ~HttpRequestParser();

  // `bytes` ends with the empty line of the head. Once, before read_body().
  void read_head(std::string_view bytes);
  // Takes bytes of the body from the front; what it leaves must be given again with more behind it.
  size_t read_body(std::string_view bytes);

  bool complete() const;
  const std::optional<HttpRefusal>& refusal() const;
  // After read_head(), without a refusal.
  bool keep_alive() const;
  bool http_1_0() const;
  bool wants_continue() const;  // Expect: 100-continue
  // After read_head(): the first header of that name (lower case), until take_request(); empty where there is none.
  std::string_view header(std::string_view name) const;
  // Bytes of the body that are still to come; nothing of a chunked one.
  std::optional<int64_t> remaining() const;
  // Of a complete request: without client and request_id. The second: what the body holds of the budget.
  HttpRequest take_request();
  HeldBytes take_held();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
