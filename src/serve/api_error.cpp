#include "serve/api_error.h"

#include "serve/http_text.h"

namespace headroom {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string ApiError::body() const { return error_body(what(), type_of(status_), param_, code_); }

HttpHeaders ApiError::headers() const {
  if (status_ == 503) return {{"Retry-After", "1"}};
  if (status_ == 401) return {{"WWW-Authenticate", "Bearer"}};
  if (!allowed_.empty()) return {{"Allow", allowed_}};
  return {};
}

void refuse(HttpExchange& exchange, const ApiError& error) {
  exchange.send(error.status(), "application/json", error.body(), error.headers());
}

}  // namespace headroom
