// What is known of one request of a load.
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
  server_error,  // another status of 500 and above, or none that was expected
  broken,        // the stream ended, or turned into an error, before the answer did
  timed_out,
  unreachable,  // no connection, or one that was closed without an answer
  cancelled,    // by the one who measures
};
constexpr std::array<const char*, 8> kOutcomeNames{"completed", "refused",   "client_error", "server_error",
                                                   "broken",    "timed_out", "unreachable",  "cancelled"};
constexpr const char* name_of(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

// Times are seconds since the load began.
struct RequestRecord {
  Outcome outcome = Outcome::cancelled;
  int status = 0;            // of HTTP; 0: none came
  bool retry_after = false;  // the refusal says when to come again
  double retry_seconds = 0;  // and when that is
  std::string message;       // what failed

  double begun = 0;
  double first = 0;  // the first text; 0: none came
  double last = 0;   // the last text
  double ended = 0;
  std::vector<float> gaps;  // seconds between pieces of text
  int64_t pieces = 0;
  int64_t input_tokens = -1;   // by the server; -1: it does not say
  int64_t output_tokens = -1;  // the same

  // By the server's count, else by pieces of text.
  int64_t tokens() const { return output_tokens >= 0 ? output_tokens : pieces; }
};

}  // namespace headroom::bench
