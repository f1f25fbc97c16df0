#include "serve/http_request_parser.h"
#include "serve/http_server.h"

namespace headroom {

int64_t HttpLimits::memory_bytes() const {
  constexpr int64_t kConnection = 4 << 10;  // socket, reactor, session, outbox, exchange, the head of an answer
  // Two strings per field, with malloc's rounding. The fields' text is part of header_bytes.
  constexpr int64_t kFields =
      static_cast<int64_t>(HttpRequestParser::kMostFields) * (sizeof(HttpHeaders::value_type) + 2 * 32);
  constexpr int64_t kServer = 384 << 10;  // reactor, listener, shared read buffer, refused connections
  constexpr int64_t kCallers = 4;         // threads that append to a full stream at the same time, and copy it
  return kServer + connections * (header_bytes + kFields + kConnection) + header_bytes + bodies_bytes + answers_bytes +
         2 * events_bytes + 2 * kCallers * event_bytes;
}

}  // namespace headroom
