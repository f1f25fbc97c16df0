#include <cmath>

#include "bench_serve/load_summary.h"
#include "formats/json.h"

namespace headroom::bench {
namespace {

Json rate_of(double rate) { return std::isinf(rate) ? Json("inf") : Json(rate); }
Json or_null(int64_t value) { return value > 0 ? Json(value) : Json(); }

void add_latency(Json& out, const LatencyMetric& metric) {
  const Distribution& d = metric.values;
  const auto set = [&](const std::string& what, double seconds) {
    out[what + "_" + metric.key + "_ms"] = d.empty() ? Json() : Json(seconds * 1000);
  };
  set("mean", d.mean());
  set("median", d.quantile(0.5));
  set("std", d.deviation());
  set("p90", d.quantile(0.9));
  set("p99", d.quantile(0.99));
  set("max", d.most());
}

Json failures_json(const LoadSummary& s) {
  Json out = Json::object();
  for (size_t i = 1; i < s.outcomes.size(); ++i) out[kOutcomeNames[i]] = s.outcomes[i];
  out["refused_with_retry_after"] = s.refused_with_retry_after;
  out["messages"] = s.messages;
  return out;
}

Json timeline_json(const LoadSummary& s) {
  Json out = Json::array();
  for (const LoadSample& sample : s.samples)
    out.push_back({{"seconds", sample.time},
                   {"running", sample.running},
                   {"begun", sample.begun},
                   {"ended", sample.ended},
                   {"failed", sample.failed},
                   {"pieces", sample.pieces},
                   {"memory_bytes", s.memory_name.empty() ? Json() : Json(sample.memory)}});
  return out;
}

}  // namespace

std::string summary_json(const LoadSummary& s) {
  const LoadOptions& o = s.options;
  Json out = {{"date", s.date},
              {"backend", o.endpoint == Endpoint::chat ? "openai-chat" : "openai"},
              {"base_url", o.base_url},
              {"endpoint", path_of(o.endpoint)},
              {"model_id", o.model},
              {"num_prompts", s.total()},
              {"request_rate", rate_of(o.request_rate)},
              {"burstiness", o.burstiness},
              {"max_concurrency", or_null(o.max_concurrency)},
              {"seed", o.seed},
              {"duration", s.seconds},
              {"stopped", s.stopped},
              {"completed", s.completed()},
              {"failed", s.failed()},
              {"total_input_tokens", s.input_tokens},
              {"total_output_tokens", s.output_tokens},
              {"tokens_by_usage", s.counted},
              {"request_throughput", s.rate(s.completed())},
              {"output_throughput", s.rate(s.output_tokens)},
              {"total_token_throughput", s.rate(s.input_tokens + s.output_tokens)},
              {"max_concurrent_requests", s.most_running}};
  for (const LatencyMetric& metric : s.latencies) add_latency(out, metric);
  out["failures"] = failures_json(s);
  if (!s.memory_name.empty())
    out["memory"] = {
        {"of", s.memory_name}, {"peak_bytes", s.memory_peak}, {"oom_kills", s.kills ? Json(*s.kills) : Json()}};
  out["timeline"] = timeline_json(s);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::bench
