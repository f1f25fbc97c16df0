#include "serve/server_page.h"

#include <fmt/format.h>

namespace headroom {

void send_page(HttpExchange& exchange) {
  exchange.send(200, "text/html; charset=utf-8", std::string(kServerPage.text),
                {{"Content-Security-Policy",
                  fmt::format("default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; "
                              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                              kServerPage.style_hash, kServerPage.script_hash)},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Cache-Control", "no-cache"}});
}

}  // namespace headroom
