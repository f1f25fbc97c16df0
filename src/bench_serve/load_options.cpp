#include "bench_serve/load_options.h"

#include "base/error.h"

namespace headroom::bench {
namespace {

void require(bool holds, const std::string& message, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::usage, message, remedy);
}

void require_range(const char* name, double value, double least, double most) {
  require(value >= least && value <= most, fmt::format("{} {} is out of range", name, value),
          fmt::format("give a number from {} to {}", least, most));
}

void require_count(const char* name, int64_t value, int64_t least, int64_t most) {
  require(value >= least && value <= most, fmt::format("{} {} is out of range", name, value),
          fmt::format("give a number from {} to {}", least, most));
}

}  // namespace

void check_load(const LoadOptions& o) {
  constexpr int64_t kMostTokens = 1 << 20, kMostRequests = 100'000'000;
  require(!o.base_url.empty(), "--base-url is missing", "give the server's address: --base-url http://127.0.0.1:8000");
  require_count("--num-prompts", o.num_prompts, o.duration > 0 ? 0 : 1, kMostRequests);
  require_range("--duration", o.duration, 0, 1e6);
  require(o.request_rate > 0 && !(o.request_rate < 1e-6),
          fmt::format("--request-rate {} is out of range", o.request_rate),
          "give a number of requests per second above 0, or inf");
  require_range("--burstiness", o.burstiness, 0.01, 1e4);
  require_count("--max-concurrency", o.max_concurrency, 0, 65536);
  require_count("--num-warmups", o.num_warmups, 0, 100'000);
  require_range("--timeout", o.timeout, 0.001, 1e6);
  require_count("--random-input-len", o.random_input_len, 1, kMostTokens);
  require_count("--random-output-len", o.random_output_len, 1, kMostTokens);
  require_count("--random-prefix-len", o.random_prefix_len, 0, kMostTokens);
  require(o.random_range_ratio >= 0 && o.random_range_ratio < 1,
          fmt::format("--random-range-ratio {} is out of range", o.random_range_ratio),
          "give a number from 0 to below 1");
  require_range("--temperature", o.temperature, 0, 100);
  const bool bounded = o.num_prompts > 0 || o.max_concurrency > 0 || o.request_rate <= 1e9;
  require(bounded, "a load without an end: --duration alone would begin requests without a pause",
          "add --max-concurrency, --request-rate or --num-prompts");
}

}  // namespace headroom::bench
