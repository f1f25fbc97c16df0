// The options of `bench-serve`, named as in vLLM's `vllm bench serve`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace headroom::bench {

enum class Endpoint : uint8_t { completions, chat };

// "/v1/completions".
constexpr const char* path_of(Endpoint endpoint) {
  return endpoint == Endpoint::chat ? "/v1/chat/completions" : "/v1/completions";
}

// Lengths are tokens, times seconds.
struct LoadOptions {
  std::string base_url;
  std::string model;  // empty: the first one of /v1/models
  std::string api_key;
  Endpoint endpoint = Endpoint::completions;

  int64_t num_prompts = 1000;                                     // requests; 0: as many as fit in `duration`
  double duration = 0;                                            // no request starts later; 0: no limit
  double request_rate = std::numeric_limits<double>::infinity();  // requests per second
  double burstiness = 1;                                          // 1: a Poisson process; less: bursts; more: regular
  int64_t max_concurrency = 0;                                    // requests at a time; 0: no limit
  int64_t num_warmups = 1;                                        // requests before the measured ones
  double timeout = 600;                                           // per request, from connecting to the last byte
  uint64_t seed = 0;

  std::filesystem::path dataset;  // requests from a file instead of random ones
  int64_t random_input_len = 1024;
  int64_t random_output_len = 128;
  int64_t random_prefix_len = 0;  // tokens at the start of every prompt, the same for all
  double random_range_ratio = 0;  // lengths are uniform within +- this share
  bool ignore_eos = false;        // ask for answers of full length (vLLM's extension)
  double temperature = 0;
};

// Throws Error(usage) for values out of range and for endless loads.
void check_load(const LoadOptions& options);

}  // namespace headroom::bench
