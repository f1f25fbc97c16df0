// HTTP/1.1 text that the server itself writes, and checks of text from clients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http_exchange.h"

namespace headroom {

// "Not Found" for 404; "Status" for a code without a name.
std::string_view http_reason(int status);

// {"error":{"message","type","param","code"}}, in OpenAI's format; param and code are null when empty.
std::string error_body(std::string_view message, std::string_view type, std::string_view param, std::string_view code);
// For refusals by the server before a handler is called.
std::string http_error_body(int status, std::string_view message, std::string_view code);

struct HttpAnswerHead {
  int status = 200;
  std::string_view content_type;  // empty: none
  std::optional<int64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool http_1_0 = false;            // the request's version
  std::string_view allowed_origin;  // empty: none
  bool varies_by_origin = false;    // other pages may get other answers
  std::string_view request_id;
  const HttpHeaders* headers = nullptr;
};

// Status line and fields, with the empty line. Drops control characters in names and values.
std::string http_head(const HttpAnswerHead& head);

// The path and the query of a request's target ("/a%20b?c", "http://host/a"); nullopt when an escape is malformed or
// encodes a control character.
struct HttpTarget {
  std::string path;
  std::string query;
};
std::optional<HttpTarget> http_target(std::string_view target);

// Whether a client's X-Request-Id may be sent back: 1 to 128 letters, digits and "-_.:/+=@".
bool http_request_id_is_plain(std::string_view id);

// Compares ASCII text, ignoring case.
bool http_equal(std::string_view a, std::string_view b);

}  // namespace headroom
