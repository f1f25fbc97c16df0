#include "bench_serve/server_address.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace headroom::bench {
namespace {

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("--base-url {}: {}", url, why), "give http://HOST:PORT");
}

bool is_port(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); }) &&
         std::stoi(text) > 0 && std::stoi(text) <= 65535;
}

// Splits "host:port" or "[::1]:port".
void read_authority(const std::string& url, const std::string& text, ServerAddress& address) {
  size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string::npos) refuse(url, "a bracket is open");
    address.host = text.substr(1, end - 1);
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    address.host = text.substr(0, end);
  }
  address.port = "80";
  if (end < text.size()) {
    if (text[end] != ':' || !is_port(text.substr(end + 1))) refuse(url, "the port is not a number from 1 to 65535");
    address.port = text.substr(end + 1);
  }
  if (address.host.empty()) refuse(url, "the host is missing");
}

}  // namespace

std::string ServerAddress::authority() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

ServerAddress parse_address(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  std::string text = url;
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos) text = std::string(kScheme) + text;
  if (text.starts_with("https://"))
    throw Error(ErrorKind::usage, fmt::format("--base-url {}: TLS is not supported", url),
                "give the http:// port of the server, or a local port of a TLS proxy: socat "
                "TCP-LISTEN:8000,fork OPENSSL:HOST:443, then --base-url http://127.0.0.1:8000");
  if (!text.starts_with(kScheme)) refuse(url, "the scheme is not http");
  for (const unsigned char c : text)
    if (c <= ' ' || c >= 0x7f || c == '?' || c == '#' || c == '@')
      refuse(url, fmt::format("{:?} is not a character of a server's address", std::string(1, static_cast<char>(c))));
  text.erase(0, kScheme.size());
  ServerAddress address;
  const size_t slash = std::min(text.find('/'), text.size());
  read_authority(url, text.substr(0, slash), address);
  address.prefix = text.substr(slash);
  while (address.prefix.ends_with('/')) address.prefix.pop_back();
  if (address.prefix.ends_with("/v1")) address.prefix.resize(address.prefix.size() - 3);
  return address;
}

}  // namespace headroom::bench
