// Parses a server's address.
#pragma once

#include <string>

namespace headroom::bench {

struct ServerAddress {
  std::string host;  // without brackets
  std::string port;
  std::string prefix;  // of every path: "/openai" for "http://host/openai/v1"; empty or starting with a slash

  // The value of a Host field: "[::1]:8000".
  std::string authority() const;
};

// Accepts "http://127.0.0.1:8000", also with "/v1" at its end, as for OpenAI's clients. Throws Error(usage) for https,
// other schemes, and text that is not an address.
ServerAddress parse_address(const std::string& url);

}  // namespace headroom::bench
