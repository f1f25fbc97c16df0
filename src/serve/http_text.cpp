#include "serve/http_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "formats/ordered_json.h"

namespace headroom {
namespace {

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_letter_or_digit(char c) { return (c >= '0' && c <= '9') || (lower_letter(c) >= 'a' && lower_letter(c) <= 'z'); }

int digit_of_hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = lower_letter(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  const auto append = [&](std::string_view text) {
    std::copy_if(text.begin(), text.end(), std::back_inserter(head),
                 [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  };
  append(name);
  head += ": ";
  append(value);
  head += "\r\n";
}

void append_date(std::string& head) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  fmt::format_to(std::back_inserter(head), "Date: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", parts);
}

void append_origin(std::string& head, std::string_view origin) {
  append_field(head, "Access-Control-Allow-Origin", origin);
  head += "Access-Control-Expose-Headers: X-Request-Id, Retry-After\r\n";
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = digit_of_hex(text[i + 1]), low = digit_of_hex(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    decoded += c;
  }
  return decoded;
}

}  // namespace

std::string_view http_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string error_body(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  OrderedJson error{{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}};
  if (!param.empty()) error["param"] = param;
  if (!code.empty()) error["code"] = code;
  return OrderedJson{{"error", std::move(error)}}.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string http_error_body(int status, std::string_view message, std::string_view code) {
  return error_body(message, status < 500 ? "invalid_request_error" : "server_error", {}, code);
}

std::string http_head(const HttpAnswerHead& head) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", head.status, http_reason(head.status));
  append_date(text);
  if (!head.content_type.empty()) append_field(text, "Content-Type", head.content_type);
  if (head.content_length) append_field(text, "Content-Length", std::to_string(*head.content_length));
  if (head.chunked) text += "Transfer-Encoding: chunked\r\n";
  if (!head.keep_alive) text += "Connection: close\r\n";
  if (head.keep_alive && head.http_1_0) text += "Connection: keep-alive\r\n";
  if (!head.request_id.empty()) append_field(text, "X-Request-Id", head.request_id);
  if (!head.allowed_origin.empty()) append_origin(text, head.allowed_origin);
  if (head.varies_by_origin) text += "Vary: Origin\r\n";
  if (head.headers)
    for (const auto& [name, value] : *head.headers) append_field(text, name, value);
  text += "\r\n";
  return text;
}

std::optional<HttpTarget> http_target(std::string_view target) {
  if (const size_t scheme = target.find("://"); scheme != std::string_view::npos && target.front() != '/') {
    const size_t path = target.find_first_of("/?", scheme + 3);
    target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  }
  HttpTarget split;
  if (const size_t query = target.find('?'); query != std::string_view::npos) {
    split.query = target.substr(query + 1);
    target = target.substr(0, query);
  }
  target = target.substr(0, target.find('#'));
  std::optional<std::string> path = percent_decoded(target);
  if (!path) return std::nullopt;
  split.path = path->empty() ? "/" : *std::move(path);
  return split;
}

bool http_request_id_is_plain(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view("-_.:/+=@").find(c) != std::string_view::npos;
  });
}

bool http_equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_letter(x) == lower_letter(y); });
}

}  // namespace headroom
