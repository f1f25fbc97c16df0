#include "serve/http_server.h"

namespace headroom {

int64_t HttpLimits::memory_bytes() const {
  constexpr int64_t kConnectionBytes = 12 << 10;  // socket, timers, parser, coroutine
  return connections * (header_bytes + kConnectionBytes) + bodies_bytes + events_bytes;
}

}  // namespace headroom
