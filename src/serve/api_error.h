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

  int status() const { return status_; }
  // The field that is to blame; empty: none.
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  std::string body() const;
  // Retry-After of 503; else nothing.
  HttpHeaders headers() const;

 private:
  int status_;
  std::string param_, code_;
};

// Answers with the error.
void refuse(HttpExchange& exchange, const ApiError& error);

}  // namespace headroom
