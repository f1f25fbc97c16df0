#include "serve/server_metrics.h"

#include <fmt/format.h>

#include "base/process_memory.h"

namespace headroom {
namespace {

std::string sample(const char* name, const char* type, const char* help, const std::string& value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

std::string gauge(const char* name, const char* help, int64_t value) {
  return sample(name, "gauge", help, std::to_string(value));
}

std::string counter(const char* name, const char* help, int64_t value) {
  return sample(name, "counter", help, std::to_string(value));
}

double since(ServerMetrics::Clock::time_point begin, ServerMetrics::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::string memory_text(const ServingPlan& plan, int64_t arena_high_water) {
  std::string out =
      gauge("headroom_budget_bytes", "what --memory allows", plan.plan.budget_bytes) +
      gauge("headroom_planned_peak_bytes", "planned peak of the process", plan.plan.peak_bytes) +
      gauge("headroom_arena_planned_bytes", "size of the arena", plan.plan.arena_bytes) +
      gauge("headroom_arena_measured_bytes", "highest byte of the arena in use", arena_high_water) +
      gauge("headroom_process_peak_bytes", "largest resident set, by the kernel", peak_resident_bytes()) +
      "# HELP headroom_region_bytes planned bytes by what they hold\n# TYPE headroom_region_bytes gauge\n";
  for (const ServingRegion& region : plan.regions)
    out += fmt::format("headroom_region_bytes{{region=\"{}\"}} {}\n", region.name, region.bytes);
  return out;
}

// Files of the plan, and weights that steps copy from a lower tier.
std::string below_text(const ServingPlan& plan, int64_t steps) {
  const StreamedWeights& streamed = plan.streamed;
  return gauge("headroom_disk_budget_bytes", "what --disk-memory allows", plan.plan.disk.budget_bytes) +
         gauge("headroom_disk_planned_bytes", "files of weights and parked blocks", plan.disk_bytes()) +
         gauge("headroom_weights_below_bytes", "weights on the host or on disk", streamed.below_bytes) +
         gauge("headroom_step_weight_bytes", "weights that a step copies from there", streamed.step_bytes) +
         counter("headroom_weight_read_bytes_total", "weights that steps have copied from there",
                 steps * streamed.step_bytes);
}

// Parked sequences; `block_bytes` is 0 while the model is loading.
std::string park_text(const SchedulerCounts& c, int64_t block_bytes) {
  return gauge("headroom_sequences_parked", "sequences whose blocks lie in the park area", c.parked) +
         gauge("headroom_sequences_stalled", "running sequences that waited for a block in the last step", c.stalled) +
         gauge("headroom_park_blocks", "blocks that the park area holds", c.park_slots) +
         gauge("headroom_park_blocks_used", "blocks that lie there", c.park_slots_used) +
         counter("vllm:num_preemptions_total", "times a sequence was parked", c.parks) +
         counter("headroom_resumes_total", "times a parked sequence was resumed", c.resumes) +
         gauge("headroom_parks_of_one_sequence", "most times any one sequence was parked", c.most_parks) +
         counter("headroom_park_written_bytes_total", "bytes copied to the park area", c.blocks_saved * block_bytes) +
         counter("headroom_park_read_bytes_total", "bytes copied back", c.blocks_loaded * block_bytes);
}

}  // namespace

void SecondsHistogram::add(double seconds) {
  size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  ++counts_[bucket];
  sum_ += seconds;
}

std::string SecondsHistogram::text(const std::string& name, const std::string& help) const {
  std::string out = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  int64_t count = 0;
  for (size_t i = 0; i < kBounds.size(); ++i)
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], count += counts_[i]);
  count += counts_.back();
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count, sum_);
}

void ServerMetrics::request(int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += prompt_tokens;
}

void ServerMetrics::token(Times& times) {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  (times.tokens == 0 ? first_token_ : between_tokens_).add(since(times.last, now));
  times.last = now;
  ++times.tokens;
}

void ServerMetrics::ended(const Times& times, SequenceEnd end) {
  const std::lock_guard lock(mutex_);
  ++ends_[static_cast<size_t>(end == SequenceEnd::no_token ? SequenceEnd::failed : end)];
  whole_.add(since(times.begun, Clock::now()));
}

void ServerMetrics::set(const SchedulerCounts& counts) {
  const std::lock_guard lock(mutex_);
  counts_ = counts;
}

SchedulerCounts ServerMetrics::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string ServerMetrics::text(const ServingPlan* plan, int64_t arena_high_water) const {
  std::string memory = plan ? memory_text(*plan, arena_high_water) : std::string();
  const int64_t block_bytes = plan ? plan->block_bytes : 0;
  const std::lock_guard lock(mutex_);
  const SchedulerCounts& c = counts_;
  if (plan) memory += below_text(*plan, c.steps);
  const double usage = c.blocks == 0 ? 0 : static_cast<double>(c.blocks_used) / static_cast<double>(c.blocks);
  std::string out =
      gauge("vllm:num_requests_running", "running sequences", c.running) +
      gauge("vllm:num_requests_waiting", "waiting sequences", c.waiting) +
      sample("vllm:kv_cache_usage_perc", "gauge", "share of the KV blocks held by sequences",
             fmt::format("{}", usage)) +
      counter("vllm:prompt_tokens_total", "prompt tokens", prompt_tokens_) +
      counter("vllm:generation_tokens_total", "generated tokens", c.drawn_tokens) +
      counter("vllm:prefix_cache_queries_total", "prompt tokens looked up among kept prefixes", c.prefix_queries) +
      counter("vllm:prefix_cache_hits_total", "prompt tokens found among kept prefixes", c.prefix_hits) +
      counter("headroom_steps_total", "steps of the model", c.steps) +
      counter("headroom_refused_total", "refused sequences", c.refused) +
      gauge("headroom_kv_blocks", "blocks of the KV pool", c.blocks) +
      gauge("headroom_kv_blocks_used", "blocks held by sequences", c.blocks_used) +
      gauge("headroom_kv_blocks_kept", "blocks kept for their prefix", c.blocks_kept) + park_text(c, block_bytes);
  out += "# HELP vllm:request_success_total finished sequences\n# TYPE vllm:request_success_total counter\n";
  constexpr const char* kEnds[] = {"stop", "length", "abort", "error"};
  for (size_t i = 0; i < ends_.size(); ++i)
    out += fmt::format("vllm:request_success_total{{finished_reason=\"{}\"}} {}\n", kEnds[i], ends_[i]);
  out += first_token_.text("vllm:time_to_first_token_seconds", "seconds from admission to the first token");
  out += between_tokens_.text("vllm:inter_token_latency_seconds", "seconds between tokens");
  out += whole_.text("vllm:e2e_request_latency_seconds", "seconds from the beginning of a sequence to its end");
  return out + memory;
}

}  // namespace headroom
