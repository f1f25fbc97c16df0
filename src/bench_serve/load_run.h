// Runs a load against a server and records what each request met.
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

// The state of a load at a time, seconds since it began.
struct LoadSample {
  double time = 0;
  int64_t running = 0;  // requests under way
  int64_t begun = 0;    // so far
  int64_t ended = 0;    // so far, however
  int64_t failed = 0;   // of these, those that were not completed
  int64_t pieces = 0;   // of text, so far
  int64_t memory = 0;   // bytes; 0 where none is watched
};

struct LoadResult {
  double seconds = 0;  // from the first request's beginning to the last one's end
  std::vector<RequestRecord> records;
  std::vector<LoadSample> samples;
  int64_t most_running = 0;
  bool stopped = false;  // before its end, by `should_end`
};

struct LoadHooks {
  std::function<void(const LoadSample&)> progress;  // four times a second; may be empty
  std::function<bool()> should_end;                 // asked as often; may be empty
  MemoryWatch* memory = nullptr;
};

// The id of the model to ask for: the first of /v1/models. Throws Error(run) with the remedy where there is none.
std::string served_model(HttpCalls& calls, const LoadOptions& options);

// What the server's /tokenize makes of sample_words(), as vLLM and headroom have it; nothing of a server without.
WordTokens word_tokens(HttpCalls& calls, const LoadOptions& options);

// Sends request 0 `num_warmups` times, one after the other. Throws Error(run) where one fails: no load is worth running
// then.
void warm_up(HttpCalls& calls, const LoadOptions& options, const RequestSource& source);

// Latency is measured from a request's connecting. One that waits for its turn under max_concurrency has not begun; one
// that was refused holds its place for as long as Retry-After says.
LoadResult run_load(HttpCalls& calls, const LoadOptions& options, const RequestSource& source, const LoadHooks& hooks);

}  // namespace headroom::bench
