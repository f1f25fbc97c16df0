// Where a server is, from the text that users give.
#pragma once

#include <string>

namespace headroom::bench {

struct ServerAddress {
  std::string host;  // without brackets
  std::string port;
  std::string prefix;  // of every path: "/openai" of "http://host/openai/v1"; empty or with a slash in front

  // As a Host field has it: "[::1]:8000".
  std::string authority() const;
};

// "http://127.0.0.1:8000", also with "/v1" at its end, as OpenAI's clients are given it. Throws Error(usage) for https,
// other schemes, and text that is not an address.
ServerAddress parse_address(const std::string& url);

}  // namespace headroom::bench
