// What a request is refused with.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "serve/http_exchange.h"

namespace headroom {

// Becomes {"error":{"message","type","param","code"}} with this status.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}
  // 405, for a path that takes `allowed` alone.
  static ApiError wrong_method(const std::string& message, std::string allowed) {
    ApiError error(405, message);
    error.allowed_ = std::move(allowed);
    return error;
  }

  int status() const { return status_; }
  // The field that is to blame; empty: none.
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  std::string body() const;
  // The same as Anthropic's clients read it: {"type":"error","error":{"type","message"}}.
  std::string message_body() const;
  // Retry-After of 503, Allow of 405, WWW-Authenticate of 401; else nothing.
  HttpHeaders headers() const;

 private:
  int status_;
  std::string param_, code_, allowed_;
};

// Answers with the error, as the clients of the path read it.
void refuse(HttpExchange& exchange, const ApiError& error);

}  // namespace headroom
