// The record of one request of a load.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace headroom::bench {

enum class Outcome : uint8_t {
  completed,
  refused,       // 503 or 429: the server has no room now
  client_error,  // another 4xx
  server_error,  // another status of 500 and above, or an unexpected one
  broken,        // the stream ended early or turned into an error
  timed_out,
  unreachable,  // no connection, or one that was closed without an answer
  cancelled,    // by the benchmark
};
constexpr std::array<const char*, 8> kOutcomeNames{"completed", "refused",   "client_error", "server_error",
                                                   "broken",    "timed_out", "unreachable",  "cancelled"};
constexpr const char* name_of(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

// Times are seconds since the load began.
struct RequestRecord {
  Outcome outcome = Outcome::cancelled;
  int status = 0;            // HTTP status; 0: none arrived
  bool retry_after = false;  // the refusal says when to retry
  double retry_seconds = 0;  // and after how many seconds
  std::string message;       // the failure

  double begun = 0;
  double first = 0;  // time of the first text; 0: none arrived
  double last = 0;   // time of the last text
  double ended = 0;
  std::vector<float> gaps;  // seconds between pieces of text
  int64_t pieces = 0;
  int64_t input_tokens = -1;   // reported by the server; -1: it did not
  int64_t output_tokens = -1;  // the same

  // As reported by the server, else the number of pieces of text.
  int64_t tokens() const { return output_tokens >= 0 ? output_tokens : pieces; }
};

}  // namespace headroom::bench
