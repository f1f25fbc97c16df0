#include "serve/api_error.h"

#include "serve/http_text.h"
#include "serve/json_text.h"

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

const char* message_type_of(int status) {
  if (status == 413) return "request_too_large";
  return status >= 500 && status != 503 ? "api_error" : type_of(status);
}

}  // namespace

std::string ApiError::message_body() const {
  const Json error{{"type", message_type_of(status_)}, {"message", what()}};
  return json_text({{"type", "error"}, {"error", error}});
}

std::string ApiError::body() const { return error_body(what(), type_of(status_), param_, code_); }

HttpHeaders ApiError::headers() const {
  if (status_ == 503) return {{"Retry-After", "1"}};
  if (status_ == 401) return {{"WWW-Authenticate", "Bearer"}};
  if (!allowed_.empty()) return {{"Allow", allowed_}};
  return {};
}

void refuse(HttpExchange& exchange, const ApiError& error) {
  const bool message = exchange.request().path.starts_with("/v1/messages");
  exchange.send(error.status(), "application/json", message ? error.message_body() : error.body(), error.headers());
}

}  // namespace headroom
