// The text of HTTP/1.1 that the server itself writes, and the checks of text that clients send.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http_exchange.h"

namespace headroom {

// "Not Found" of 404; "Status" of a number without a name.
std::string_view http_reason(int status);

// {"error":{"message","type","param","code"}}, as OpenAI's clients read it; param and code are null where empty.
std::string error_body(std::string_view message, std::string_view type, std::string_view param, std::string_view code);
// Of what the server refuses before a handler is asked.
std::string http_error_body(int status, std::string_view message, std::string_view code);

struct HttpAnswerHead {
  int status = 200;
  std::string_view content_type;  // none where empty
  std::optional<int64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool http_1_0 = false;            // of the request
  std::string_view allowed_origin;  // none where empty
  bool varies_by_origin = false;    // another page may get another answer
  std::string_view request_id;
  const HttpHeaders* headers = nullptr;
};

// Status line and fields with the empty line. Control characters in names and values are left out.
std::string http_head(const HttpAnswerHead& head);

// The path and the query of a request's target ("/a%20b?c", "http://host/a"); nothing where an escape is malformed or
// stands for a control character.
struct HttpTarget {
  std::string path;
  std::string query;
};
std::optional<HttpTarget> http_target(std::string_view target);

// Whether a client's X-Request-Id may be sent back: 1 to 128 letters, digits and "-_.:/+=@".
bool http_request_id_is_plain(std::string_view id);

// ASCII letters without regard to case.
bool http_equal(std::string_view a, std::string_view b);

}  // namespace headroom
