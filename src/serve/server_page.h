// The page at /: a chat, and the server's memory drawn live. One HTML file that asks for nothing but the API.
#pragma once

#include <string_view>

#include "serve/http_exchange.h"

namespace headroom {

struct ServerPage {
  std::string_view text;
  std::string_view style_hash, script_hash;  // "sha256-...", as a Content-Security-Policy has them
};

// Built from src/serve/page.
extern const ServerPage kServerPage;

// Answers with the page and a policy under which a browser runs its own script alone and sends to this server alone.
void send_page(HttpExchange& exchange);

}  // namespace headroom
