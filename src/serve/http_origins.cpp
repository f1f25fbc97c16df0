#include "serve/http_origins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

[[noreturn]] void refuse_origin(const std::string& origin) {
  throw Error(ErrorKind::usage, fmt::format("--allowed-origins: {} is not an origin", Json(origin).dump()),
              "give scheme://host or scheme://host:port without a path, a list of these in JSON, or '[\"*\"]' for all");
}

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("-._:[]").find(c) != std::string_view::npos;
}

std::string read_origin(const std::string& text) {
  std::string origin = text;
  for (char& c : origin)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const size_t scheme = origin.find("://");
  const std::string host = scheme == std::string::npos ? std::string() : origin.substr(scheme + 3);
  const bool is_named = scheme != 0 && !host.empty() && std::all_of(host.begin(), host.end(), is_host_letter) &&
                        std::all_of(origin.begin(), origin.begin() + static_cast<std::ptrdiff_t>(scheme),
                                    [](char c) { return is_host_letter(c) && c != ':'; });
  if (!is_named) refuse_origin(text);
  for (const auto& [name, port] : {std::pair("https://", ":443"), std::pair("http://", ":80")})
    if (origin.starts_with(name) && origin.ends_with(port))
      origin.resize(origin.size() - std::string_view(port).size());
  return origin;
}

}  // namespace

std::string_view HttpOrigins::answer_to(std::string_view origin) const {
  if (any) return "*";
  const auto found = std::find(list.begin(), list.end(), origin);
  return found == list.end() ? std::string_view() : *found;
}

HttpOrigins read_origins(const std::string& text) {
  const Json given = text.starts_with('[') ? Json::parse(text, nullptr, false) : Json::array({text});
  if (!given.is_array() || given.empty()) refuse_origin(text);
  HttpOrigins origins;
  for (const Json& origin : given) {
    if (!origin.is_string()) refuse_origin(text);
    if (origin == "*")
      origins.any = true;
    else
      origins.list.push_back(read_origin(origin.get<std::string>()));
  }
  return origins;
}

}  // namespace headroom
