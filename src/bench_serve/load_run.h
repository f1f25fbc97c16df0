// Runs a load against a server and records what became of each request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench_serve/http_calls.h"
#include "bench_serve/load_options.h"
#include "bench_serve/memory_watch.h"
#include "bench_serve/request_record.h"
#include "bench_serve/request_source.h"

namespace headroom::bench {

// The state of a load at a time, in seconds since its start.
struct LoadSample {
  double time = 0;
  int64_t running = 0;  // requests in progress
  int64_t begun = 0;    // started so far
  int64_t ended = 0;    // ended so far, in any way
  int64_t failed = 0;   // of these, not completed
  int64_t pieces = 0;   // of text, so far
  int64_t memory = 0;   // bytes; 0 when no memory is watched
};

struct LoadResult {
  double seconds = 0;  // from the start of the first request to the end of the last
  std::vector<RequestRecord> records;
  std::vector<LoadSample> samples;
  int64_t most_running = 0;
  bool stopped = false;  // before its end, by `should_end`
};

struct LoadHooks {
  std::function<void(const LoadSample&)> progress;  // called four times a second; may be empty
  std::function<bool()> should_end;                 // called as often; may be empty
  MemoryWatch* memory = nullptr;
};

// The id of the model to request: the first one of /v1/models. Throws Error(run) with a remedy when there is none.
std::string served_model(HttpCalls& calls, const LoadOptions& options);

// Tokens of sample_words() by the server's /tokenize, as in vLLM, llama.cpp and headroom; empty if the server does not
// have it.
WordTokens word_tokens(HttpCalls& calls, const LoadOptions& options);

// Sends request 0 `num_warmups` times, one after another. Throws Error(run) when one fails, because a load would then
// be pointless.
void warm_up(HttpCalls& calls, const LoadOptions& options, const RequestSource& source);

// Latency is measured from a request's connecting. A request that waits because of max_concurrency has not started. One
// that was refused keeps its place for as long as Retry-After says.
LoadResult run_load(HttpCalls& calls, const LoadOptions& options, const RequestSource& source, const LoadHooks& hooks);

}  // namespace headroom::bench
