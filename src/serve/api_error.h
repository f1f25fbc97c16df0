// The error with which a request is refused.
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
  // 405, for a path that accepts only `allowed`.
  static ApiError wrong_method(const std::string& message, std::string allowed) {
    ApiError error(405, message);
    error.allowed_ = std::move(allowed);
    return error;
  }

  int status() const { return status_; }
  // The field that is wrong; empty: none.
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  std::string body() const;
  // The body in Anthropic's format: {"type":"error","error":{"type","message"}}.
  std::string message_body() const;
  // Retry-After for 503, Allow for 405, WWW-Authenticate for 401; else empty.
  HttpHeaders headers() const;

 private:
  int status_;
  std::string param_, code_, allowed_;
};

// Sends the error in the format of the path's API.
void refuse(HttpExchange& exchange, const ApiError& error);

}  // namespace headroom
