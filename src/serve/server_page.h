// The page at /: a chat, and a live drawing of the server's memory. One HTML file that uses only the API.
#pragma once

#include <string_view>

#include "serve/http_exchange.h"

namespace headroom {

struct ServerPage {
  std::string_view text;
  std::string_view style_hash, script_hash;  // "sha256-...", for a Content-Security-Policy
};

// Generated from src/serve/page.
extern const ServerPage kServerPage;

// Sends the page, with a policy that lets the browser run only its own script and connect only to this server.
void send_page(HttpExchange& exchange);

}  // namespace headroom
