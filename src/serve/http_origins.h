// The web pages whose scripts may read this server's answers (CORS).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct HttpOrigins {
  bool any = false;               // every origin; else only the listed ones
  std::vector<std::string> list;  // "https://a.example", "http://localhost:3000"

  bool none() const { return !any && list.empty(); }
  // The value of Access-Control-Allow-Origin for a request with this Origin. Empty: none, so the browser withholds the
  // answer from the page's script. Valid as long as this object.
  std::string_view answer_to(std::string_view origin) const;
};

// `*`, one origin, or a JSON list of them, like vLLM's --allowed-origins. Names are converted to lower case and default
// ports removed, as in browsers. Throws Error(usage) with the text that is not an origin.
HttpOrigins read_origins(const std::string& text);

}  // namespace headroom
