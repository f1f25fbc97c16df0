// The pages of which a browser lets its scripts read what this server answers (CORS).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct HttpOrigins {
  bool any = false;               // pages of every origin; else of those listed
  std::vector<std::string> list;  // "https://a.example", "http://localhost:3000"

  bool none() const { return !any && list.empty(); }
  // What Access-Control-Allow-Origin says to a request with this Origin; empty: nothing, so that the page's script does
  // not get the answer. Valid as long as this object.
  std::string_view answer_to(std::string_view origin) const;
};

// `*`, one origin, or a JSON list of these, as vLLM's --allowed-origins has it. Names are put in lower case and a
// scheme's own port is left out, as browsers have them. Throws Error(usage) naming what is not an origin.
HttpOrigins read_origins(const std::string& text);

}  // namespace headroom
